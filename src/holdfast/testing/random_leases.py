"""Random commands on leases, plain ones and such with capacity."""

from typing import TYPE_CHECKING

from msgspec import Raw

from holdfast.commands import Acquire, Break, LeaseName, Release, Renew, Resize

if TYPE_CHECKING:
    from holdfast.testing.randomness import World

DICTS = ("config", "state")
SHARED = "shared"
"""A name with capacity."""
LEASES = ("a", "b", SHARED)


def acquire(world: "World") -> Acquire:
    chance = world.chance
    if world.is_plain() and chance.random() < 0.6:
        holder = chance.choice(("ann", "bob"))
        return Acquire(chance.choice((None, *DICTS)), chance.choice(("a", "b")), holder, world.name(), chance.choice((2, 8, 30)))
    known = [lease.lease_id for lease in world.leases[-3:]]
    return Acquire(
        chance.choice((None, *DICTS)),
        chance.choice(("a", "b")),
        chance.choice(("ann", "bob")),
        chance.choice(known) if known and chance.random() < 0.2 else world.name(),
        chance.choice((None, 2, 8, 30)),
        default=chance.choice((None, None, Raw(b'"default"'))),
        all_or_none=chance.random() < 0.2,
    )


def share(world: "World") -> Acquire:
    """A part of a name with capacity, or a place in line for one."""
    chance = world.chance
    known = [lease.lease_id for lease in world.leases[-6:]] + world.waiting[-4:]
    capacity = chance.choice((3, 3, 3, 3, 3, 5))
    in_line_s = chance.choice((None, 4, 4, 9))
    lease_id = chance.choice(known) if known and chance.random() < 0.4 else world.name()
    if in_line_s is not None:
        world.waiting.append(lease_id)
        world.leases.append(LeaseName(None, SHARED, lease_id))
    return Acquire(
        None,
        chance.choice((SHARED, SHARED, SHARED, SHARED, "a")),
        chance.choice(("ann", "bob")),
        lease_id,
        chance.choice((None, 2, 8, 8, 30)),
        all_or_none=chance.random() < 0.1,
        capacity=capacity,
        weight=chance.choice((1, 1, 1, 2, 3)),
        in_line_s=in_line_s,
        max_waiters=chance.choice((None, None, 2)) if in_line_s is not None else None,
    )


def resize(world: "World") -> Resize:
    return Resize(world.chance.choice((SHARED, SHARED, "b")), world.chance.choice((None, None, 1, 3, 4)))


def break_lease(world: "World") -> Break:
    chance = world.chance
    reason = chance.choice(("to see what happens", "ü"))
    return Break(chance.choice((None, None, *DICTS)), chance.choice(LEASES), reason, chance.choice((None, world.number())))


def newest(world: "World") -> list[LeaseName]:
    """The lease that was taken last, of those without capacity; it is probably still held."""
    return [lease for lease in world.leases if lease.key != SHARED][-1:]


def renew(world: "World") -> Renew:
    if (plain := newest(world)) and world.is_plain():
        return Renew(plain, world.chance.choice((5, 30)))
    return Renew(distinct(world.some(world.leases)), world.chance.choice((None, 5, 30)), all_or_none=world.chance.random() < 0.2)


def release(world: "World") -> Release:
    if (plain := newest(world)) and world.is_plain():
        world.leases.remove(plain[0])
        return Release(plain)
    return Release(distinct(world.some(world.leases)), all_or_none=world.chance.random() < 0.2)


def distinct(names: list[LeaseName]) -> list[LeaseName]:
    return list(dict.fromkeys(names))
