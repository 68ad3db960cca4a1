"""sentinel's API for tasks, on psycopg's async connections, which `get_conn` makes.

A heartbeat runs in a thread, whatever blocks the loop, so its connection is one for threads, made like that of the lease.
"""

from holdfast.surfaces.sentinel._async.calls import acquire, heartbeat, init_db, release
from holdfast.surfaces.sentinel._async.lease import AsyncLease, lease
from holdfast.surfaces.sentinel._async.once import AsyncSentinel

__all__ = ["AsyncLease", "AsyncSentinel", "acquire", "heartbeat", "init_db", "lease", "release"]
