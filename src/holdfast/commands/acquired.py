"""The answer to a request for a lease."""

from msgspec import Struct

from holdfast.records import NEVER, Entry, Lease, seconds_in


class Acquired(Struct, frozen=True, gc=False, omit_defaults=True):
    """The lease in force, in how many seconds it ends, and the entry under its key at that moment."""

    lease: Lease
    ends_in_s: float | None = None
    entry: Entry | None = None
    holders: list[Lease] = []
    """Of a lease with capacity that was not granted: who has it, at most 100, by when they end."""
    place: int | None = None
    """The caller's place in the line, 1 for the first; those who gave up in between are counted."""


def ends_in_s(now: int, until: int) -> float | None:
    """How long what ends then still runs, None for ever."""
    return None if until >= NEVER else seconds_in(max(until - now, 0))
