"""sentinel's API for tasks, on psycopg's async connections; heartbeats run in a thread, so `get_conn` makes a connection for threads."""

from holdfast.surfaces.sentinel._async.calls import acquire, heartbeat, init_db, release
from holdfast.surfaces.sentinel._async.lease import AsyncLease, lease
from holdfast.surfaces.sentinel._async.once import AsyncSentinel

__all__ = ["AsyncLease", "AsyncSentinel", "acquire", "heartbeat", "init_db", "lease", "release"]
