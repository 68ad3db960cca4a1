"""What a step is refused for, in words: every store that answers natively raises the same."""

from collections.abc import Sequence

from holdfast.errors import ClaimLost, Compacted, KeyInFlight, LeaseHeld, LeaseLost, QueueFull, Refused, StoreMoved
from holdfast.records import Lease, Receipt


def queue_full(queue: str, used: int, maxsize: int, wanted: int) -> QueueFull:
    """More was put than there is room for."""
    message = f"queue {queue!r} is full: {used} of {maxsize} messages wait and {wanted} more were put; wait for room or raise maxsize"
    return QueueFull(message)


def key_in_flight(queue: str, key: str, *, held: bool) -> KeyInFlight:
    """A put with `reject` met a message under its key."""
    return KeyInFlight(f"key {key} of queue {queue!r} is {'claimed' if held else 'waiting'}, and this put was to be rejected then")


def claims_lost(lost: Sequence[Receipt], of: int) -> ClaimLost:
    """Some of the claims that had to be held together are lost."""
    message = f"{len(lost)} of {of} claims are no longer held, the first {lost[0].claim_id}; nothing was changed: claim again"
    return ClaimLost(message, lost)


def lease_held(lease: Lease, ends_in_s: float | None) -> LeaseHeld:
    """Somebody else has the lease."""
    return LeaseHeld(f"{describe(lease.dict, lease.key)} is held by {lease.holder!r}; nothing was changed", lease, ends_in_s)


def lease_in_transaction(dict: str | None, key: str) -> LeaseHeld:
    """Another transaction has taken, renewed or released the lease, and nobody knows yet whether it will commit."""
    return LeaseHeld(f"{describe(dict, key)} is used by a transaction that is still open; nothing was changed")


def lease_lost(dict: str | None, key: str, lease_id: str) -> LeaseLost:
    """The lease is not held, or not under this id."""
    return LeaseLost(f"{describe(dict, key)} is no longer held under {lease_id}; nothing was changed: acquire it again")


def not_written(dict: str, key: str, because: str, lease: str | None) -> LeaseLost | Refused:
    """A condition of a change was not met."""
    if because == "lease":
        return LeaseLost(f"lease {lease} on key {key} of dict {dict!r} is no longer held; nothing was written")
    reason = "a higher token has written it" if because == "fence" else "it is not as expected"
    return Refused(f"key {key} of dict {dict!r}: {reason}; nothing was written")


def fence_too_high(dict: str, key: str, fence: int, newest: int) -> Refused:
    """A fence that no token of this store can be: it would shut out every holder to come."""
    return Refused(
        f"key {key} of dict {dict!r}: fence {fence} is above {newest}, the newest token of this store; nothing was written: "
        "give the token of a claim or a lease of this store"
    )


def no_number(dict: str, key: str) -> Refused:
    """An increment met something else."""
    return Refused(f"key {key} of dict {dict!r} holds no number to increment; nothing was written")


def out_of_range(dict: str, key: str) -> Refused:
    """An increment would leave what a JSON number can be here."""
    return Refused(f"key {key} of dict {dict!r} would leave the range of numbers; nothing was written")


def compacted(topic: str, after: int, floor: int, latest: int) -> Compacted:
    """The events asked for are gone, or of another store."""
    if after < floor:
        return Compacted(f"events of {topic} up to {floor} are gone, and {after} was asked for: take a fresh snapshot", floor)
    if after <= latest:
        message = f"{topic} was asked for events after {after}, a number this store skipped (was a backup restored?): take a fresh snapshot"
        return Compacted(message, floor)
    message = f"{topic} was asked for events after {after}, but this store's newest is {latest}: take a fresh snapshot"
    return Compacted(message, floor)


def answer_too_large() -> Refused:
    """A step would be answered with more than one answer may bring."""
    return Refused(
        "the answer would bring more than 16 MiB; nothing was changed: name fewer things, give reads and claims a limit, "
        "or make it several steps"
    )


def describe(name: str | None, key: str) -> str:
    """The lease, for a message."""
    return f"lease {key}" if name is None else f"the lease on key {key} of dict {name!r}"


def not_empty() -> Refused:
    """The target of a copy has something in it."""
    return Refused("the target of the copy is not empty; nothing was changed: name another, or say that it is to be merged")


def other_copy(running: str, wanted: str) -> Refused:
    """The target of a copy holds a part of another one."""
    return Refused(
        f"this store holds a part of a copy of {running}, and {wanted} is to be copied: "
        "that is another, or has been written to since; empty this store and begin again"
    )


def no_copy(source: str) -> Refused:
    """A page came of a copy that nobody began."""
    return Refused(f"no copy of {source} is under way here; nothing was changed: begin it first")


def other_place(source: str, place: str, after: str) -> Refused:
    """A page came that is not the next one."""
    return Refused(f"the copy of {source} has come to {place!r}, not to {after!r}: somebody else copies it, too")


def both_have(what: str) -> Refused:
    """A page would overwrite something."""
    return Refused(f"{what} is in the source and in the target; the page was not taken in: remove it from the target, and copy again")


def written_meanwhile() -> Refused:
    """The source of a copy was not idle."""
    return Refused("the source was written to while it was copied; it was not sealed: stop who writes, empty the target, copy again")


def moved(where: str, to: str) -> StoreMoved:
    """Everything was copied elsewhere."""
    return StoreMoved(f"{where} was copied to {to}: open that instead, or take the copy back with `holdfast copy --undo`", to)
