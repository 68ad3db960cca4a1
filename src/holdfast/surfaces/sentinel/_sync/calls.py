# Generated from src/holdfast/surfaces/sentinel/_async/calls.py by tools/unasync.py; do not edit.
"""Single calls on a connection of the caller's own.

In an open transaction they take part in it and never commit; on an idle connection each is a transaction of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast._sync.flows import acquiring
from holdfast.commands import Names, Release, Renew
from holdfast.connect import connect
from holdfast.results import wall_time
from holdfast.surfaces.sentinel.results import (
    TTL_MS,
    AcquireResult,
    HeartbeatResult,
    ReleaseResult,
    answer,
    grant_of,
    question,
    seconds,
    wait_s_of,
    who_holds,
)

if TYPE_CHECKING:
    from holdfast.stores import Store


def init_db(conn: Any) -> None:
    """Create what is missing. The first call of any other kind does it, too."""
    with borrowed(conn) as store:
        store.execute(Names("queue", limit=1))


def acquire(
    conn: Any, key: str, ttl_ms: float | None = TTL_MS, *, owner_id: str | None = None, wait_ms: float | None = None
) -> AcquireResult:
    """Take the lease on a key if it is free, or with `wait_ms` as soon as it becomes so. The loser's answer says who holds it."""
    with borrowed(conn) as store:
        command = question(key, owner_id, ttl_ms)
        acquired, _ = acquiring.acquire(store, command, wait_s_of(wait_ms))
        return answer(command, acquired, store.wall_offset_us())


def heartbeat(conn: Any, key: str, owner_id: str, ttl_ms: float | None = 5_000, *, fencing_token: int | None = None) -> HeartbeatResult:
    """Keep the lease from now on for `ttl_ms`, if it is still held; one that has ended stays lost."""
    with borrowed(conn) as store:
        name = grant_of(key, owner_id, fencing_token, _in_force(store, key, fencing_token))
        (lease,) = (store.execute(Renew([name], seconds(ttl_ms)))).leases
        if lease is None:
            return HeartbeatResult(extended=False)
        return HeartbeatResult(extended=True, expires_at=wall_time(lease.until, store.wall_offset_us()))


def release(conn: Any, key: str, owner_id: str, *, fencing_token: int | None = None) -> ReleaseResult:
    """Give the lease back, if it is still held."""
    with borrowed(conn) as store:
        name = grant_of(key, owner_id, fencing_token, _in_force(store, key, fencing_token))
        (was_held,) = (store.execute(Release([name]))).held
        return ReleaseResult(released=was_held)


@contextmanager
def borrowed(conn: Any) -> "Iterator[Store]":
    """A store on the connection, which stays the caller's."""
    store = connect(conn)
    try:
        yield store
    finally:
        store.close()


def _in_force(store: "Store", key: str, fencing_token: int | None) -> Any:
    """The lease in force, which only an owner with a name of its own and a token needs to know."""
    if fencing_token is None:
        return None
    (found,) = (store.execute(who_holds(key))).leases
    return None if found is None else found.lease
