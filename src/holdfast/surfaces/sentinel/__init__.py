"""sentinel's API: leases with fencing tokens on a connection of the caller's own, of psycopg or `sqlite3`.

`holdfast.surfaces.sentinel.aio` has the same for tasks, on psycopg's async connections.
"""

from holdfast.sql_fence import Fence, fence
from holdfast.surfaces.sentinel._sync.calls import acquire, heartbeat, init_db, release
from holdfast.surfaces.sentinel._sync.lease import Lease, lease
from holdfast.surfaces.sentinel._sync.once import Sentinel
from holdfast.surfaces.sentinel.results import AcquireResult, HeartbeatResult, OnceResult, ReleaseResult

__all__ = [
    "AcquireResult",
    "Fence",
    "HeartbeatResult",
    "Lease",
    "OnceResult",
    "ReleaseResult",
    "Sentinel",
    "acquire",
    "fence",
    "heartbeat",
    "init_db",
    "lease",
    "release",
]
