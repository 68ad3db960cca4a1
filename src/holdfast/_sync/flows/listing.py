# Generated from src/holdfast/_async/flows/listing.py by tools/unasync.py; do not edit.
"""Lists leases, in as many pages as needed, and takes one from its holder."""

from typing import Any

from holdfast.codec import decode_key
from holdfast.codec.fields import LIMIT
from holdfast.commands import Break, Holding, Leases
from holdfast.records import Lease
from holdfast.results import LeaseGrant, LeaseInfo, wall_time
from holdfast.stores import Store

PAGE = 1_000
KIND_AND_NAME = 2


def held_leases(store: Store, of: str | None, prefix: str, limit: int) -> list[LeaseInfo]:
    """Up to so many names, or keys of a dict, that are held, by key."""
    found: list[LeaseInfo] = []
    LIMIT.check(limit)
    after = None
    while len(found) < limit:
        page = store.execute(Leases(of, prefix, after, min(PAGE, limit - len(found))))
        found += [_info(of, one, store.wall_offset_us()) for one in page.held]
        after = page.after
        if after is None:
            break
    return found


def break_lease(store: Store, of: str | None, key: str, reason: str, token: int | None) -> list[LeaseGrant]:
    """End the lease on a key, or the grant with this token, or all grants; return those that ended."""
    broken = store.execute(Break(of, key, reason, token))
    return [_grant(lease, store.wall_offset_us()) for lease in broken.leases]


def _info(of: str | None, found: Holding, offset_us: int) -> LeaseInfo:
    kind, name = _named(of, found.key)
    holders = tuple(_grant(lease, offset_us) for lease in found.leases)
    return LeaseInfo(name, kind, holders, found.capacity, found.used, found.waiting)


def _named(of: str | None, key: str) -> tuple[Any, Any]:
    """Lock, semaphore and so on, and its name; of what no handle made, the key."""
    try:
        decoded: Any = decode_key(key)
    except ValueError:
        return None, key
    if of is None and isinstance(decoded, tuple) and len(decoded) == KIND_AND_NAME:
        return decoded
    return None, decoded if of is not None else key


def _grant(lease: Lease, offset_us: int) -> LeaseGrant:
    return LeaseGrant(lease.holder, lease.token, wall_time(lease.since, offset_us), wall_time(lease.until, offset_us))
