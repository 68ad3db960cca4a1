"""The errors of refused steps; every store raises the same."""

from collections.abc import Sequence
from typing import Final

from holdfast.errors import (
    ClaimLost,
    Compacted,
    IdTaken,
    KeyInFlight,
    LeaseHeld,
    LeaseLost,
    LineFull,
    QueueFull,
    RateLimited,
    Refused,
    StoreMoved,
)
from holdfast.records import Lease, Receipt

NAMED: Final = 3
"""So many holders stand in a message."""


def queue_full(queue: str, used: int, maxsize: int, wanted: int) -> QueueFull:
    """More was put than there is room for."""
    message = f"queue {queue!r} is full: {used} of {maxsize} messages wait and {wanted} more were put; wait for room or raise maxsize"
    return QueueFull(message)


def key_in_flight(queue: str, key: str, *, held: bool) -> KeyInFlight:
    """A put with `reject` met a message under its key."""
    return KeyInFlight(f"key {key} of queue {queue!r} is {'claimed' if held else 'waiting'}, and the policy of this put is reject")


def key_is_recent(queue: str, key: str) -> KeyInFlight:
    """A put with `if_recent="reject"` met a key that was put not long ago."""
    return KeyInFlight(f"key {key} of queue {queue!r} was put within its unique_for_s, and if_recent of this put is reject")


def id_taken(queue: str, message_id: str) -> IdTaken:
    """A put with `if_id="reject"` met a message under its id that has another value."""
    return IdTaken(
        f"id {message_id!r} of queue {queue!r} has another value; nothing was put: use another id, or leave if_id out to ignore it"
    )


def too_many_messages(queue: str, count: int, most: int, what: str) -> Refused:
    """A change of a queue's policy would have to look at more messages than one step may."""
    return Refused(
        f"queue {queue!r} has {count:,} {what}, and this change of its policy allows {most:,}; nothing was changed: "
        "move them to a new queue that has the policy from the beginning"
    )


def policies_clash(queue: str, one: str, other: str) -> Refused:
    """Two policies that one queue cannot have."""
    return Refused(f"queue {queue!r} cannot have {one} together with {other}; nothing was changed: take one of them away")


def claims_lost(lost: Sequence[Receipt], of: int) -> ClaimLost:
    """Some of the claims that had to be held together are lost."""
    message = f"{len(lost)} of {of} claims are no longer held, the first {lost[0].claim_id}; nothing was changed: claim again"
    return ClaimLost(message, lost)


def lease_held(lease: Lease, ends_in_s: float | None) -> LeaseHeld:
    """Another holder has the lease."""
    return LeaseHeld(f"{describe(lease.dict, lease.key)} is held by {lease.holder!r}; nothing was changed", lease, ends_in_s)


def shares_held(key: str, lease: Lease, ends_in_s: float | None, holders: Sequence[Lease]) -> LeaseHeld:
    """Others have too much of the capacity, or stand in line before."""
    what = f"is held by {_named(holders)}" if holders else f"is to be had by {lease.holder!r}, who is before you in line"
    return LeaseHeld(f"{describe(None, key)} {what}; nothing was changed", lease, ends_in_s, holders)


def line_full(key: str, waiting: int, lease: Lease, ends_in_s: float | None, holders: Sequence[Lease]) -> LineFull:
    """As many wait as may."""
    message = f"{describe(None, key)} has {waiting} waiting in line, as many as may; nothing was changed: try again later"
    return LineFull(message, lease, ends_in_s, holders)


def other_capacity(key: str, capacity: int, asked: int | None) -> Refused:
    """A name with capacity was asked for with another one, or as a plain lease."""
    if asked is None:
        kind = "and was asked for as a plain lease; nothing was changed: ask for it with its capacity everywhere (a lock: fair=True)"
    else:
        kind = f"not {asked}; nothing was changed: use one capacity everywhere, or resize it"
    return Refused(f"{describe(None, key)} has capacity {capacity}, {kind}")


def plain_lease(lease: Lease) -> Refused:
    """A plain lease was asked for with a capacity."""
    return Refused(
        f"{describe(None, lease.key)} is held by {lease.holder!r} as a plain lease, and was asked for with a capacity; nothing was "
        "changed: ask for it in one way everywhere (a lock: fair=True), or wait until it is free"
    )


def too_heavy(key: str, weight: int, capacity: int) -> Refused:
    """More was asked for than there is, since the capacity was set to less."""
    return Refused(
        f"{describe(None, key)} was resized to capacity {capacity}, less than the weight {weight}; nothing was changed: resize it"
    )


def _named(holders: Sequence[Lease]) -> str:
    names, more = ", ".join(repr(lease.holder) for lease in holders[:NAMED]), len(holders) - NAMED
    return f"{names} and {more} more" if more > 0 else names


def lease_in_transaction(dict: str | None, key: str, lease: Lease | None, ends_in_s: float | None) -> LeaseHeld:
    """Another transaction uses the lease, which may or may not commit; `lease` is the one in force, if any."""
    return LeaseHeld(f"{describe(dict, key)} is used by a transaction that is still open; nothing was changed", lease, ends_in_s)


def lease_lost(dict: str | None, key: str, lease_id: str) -> LeaseLost:
    """The lease is not held, or not under this id."""
    return LeaseLost(f"{describe(dict, key)} is no longer held under {lease_id}; nothing was changed: acquire it again")


def not_written(dict: str, key: str, because: str, lease: str | None, due_in_s: float | None = None) -> LeaseLost | Refused:
    """A condition of a change was not met; `due_in_s` is when a rate that is used up lets it through."""
    if because == "lease":
        return LeaseLost(f"lease {lease} on key {key} of dict {dict!r} is no longer held; nothing was written")
    if because == "rate":
        due_in_s = due_in_s or 0.0
        return RateLimited(f"key {key} of dict {dict!r}: its rate is used up for {due_in_s:.6f} s; nothing was written", due_in_s)
    reason = "a higher token has written it" if because == "fence" else "it is not as expected"
    return Refused(f"key {key} of dict {dict!r}: {reason}; nothing was written")


def fence_too_high(dict: str, key: str, fence: int, newest: int) -> Refused:
    """A fence that no token of this store can be: it would shut out every holder to come."""
    return Refused(
        f"key {key} of dict {dict!r}: fence {fence} is above {newest}, the newest token of this store; nothing was written: "
        "give the token of a claim or a lease of this store"
    )


def fence_lost(dict: str, key: str, fence: int) -> Refused:
    """A fence that was a token before a backup took the place of the data."""
    return Refused(
        f"key {key} of dict {dict!r}: fence {fence} was given out after the backup that this store was restored from; nothing was written: "
        "acquire the lease or claim the message again"
    )


def no_number(dict: str, key: str) -> Refused:
    """An increment met something else."""
    return Refused(f"key {key} of dict {dict!r} is not a number and cannot be incremented; nothing was written")


def no_rate(dict: str, key: str) -> Refused:
    """A change that paces met an entry that has no end, so something else."""
    return Refused(f"key {key} of dict {dict!r} has a value and does not pace; nothing was written: use another key")


def out_of_range(dict: str, key: str) -> Refused:
    """An increment would leave what a JSON number can be here."""
    return Refused(f"key {key} of dict {dict!r} cannot be incremented beyond the range of numbers; nothing was written")


def compacted(topic: str, after: int, floor: int, latest: int) -> Compacted:
    """The events asked for are gone, or of another store."""
    if after < floor:
        return Compacted(f"events of {topic} up to {floor} are gone, but events after {after} were requested: take a fresh snapshot", floor)
    if after <= latest:
        skipped = "a number that this store skipped (was a backup restored?)"
        message = f"events of {topic} after {after} were requested, {skipped}: take a fresh snapshot"
        return Compacted(message, floor)
    message = f"events of {topic} after {after} were requested, but the newest number of this store is {latest}: take a fresh snapshot"
    return Compacted(message, floor)


def answer_too_large() -> Refused:
    """A step would be answered with more than one answer may bring."""
    return Refused(
        "the result would exceed 16 MiB; nothing was changed: request fewer items, give reads and claims a limit, or use several steps"
    )


def describe(name: str | None, key: str) -> str:
    """The lease, for a message."""
    return f"lease {key}" if name is None else f"the lease on key {key} of dict {name!r}"


def not_empty() -> Refused:
    """The target of a copy has something in it."""
    return Refused("the target of the copy is not empty; nothing was changed: name another, or merge into it")


def other_copy(running: str, wanted: str) -> Refused:
    """The target of a copy holds a part of another one."""
    return Refused(
        f"this store has part of a copy of {running}, but the source is now {wanted}: "
        "it is another store, or was written to since; empty this store and start over"
    )


def no_copy(source: str) -> Refused:
    """A page came of a copy that was not begun."""
    return Refused(f"no copy of {source} is in progress here; nothing was changed: begin it first")


def other_place(source: str, place: str, after: str) -> Refused:
    """A page came that is not the next one."""
    return Refused(f"the copy of {source} is at {place!r}, not at {after!r}: another process is copying it, too")


def both_have(what: str) -> Refused:
    """A page would overwrite something."""
    return Refused(f"{what} is in the source and in the target; the page was not imported: remove it from the target, and copy again")


def written_meanwhile() -> Refused:
    """The source of a copy was not idle."""
    return Refused("the source was written to while it was copied; it was not sealed: stop all writers, empty the target, copy again")


def moved(where: str, to: str) -> StoreMoved:
    """Everything was copied elsewhere."""
    return StoreMoved(f"{where} was copied to {to}: open that instead, or undo the copy with `holdfast copy --undo`", to)
