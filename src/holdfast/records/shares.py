"""The records of leases with capacity: what stands for the name, its grants, and the line of those who wait."""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.records import Lease

SHARED_HOLDER: Final = "several, with a capacity"
"""Who holds a name with capacity, to those who know nothing of capacity."""

ShareOrder = Literal["grants", "tickets", "line"]
"""Grants by end, tickets of those who wait by end, and these by their place."""


class Shared(Lease, frozen=True, gc=False, omit_defaults=True):
    """What stands for a name with capacity among the leases: it has no holder and no end.

    So a release that does not know capacity finds the name held. Its grants, and those who wait in line for one, are shares.
    """

    capacity: int = 0
    used: int = 0
    """The weights of all grants, of those that have ended until the next caller asks for one."""
    waiting: int = 0
    last: int = 0
    """The place that was given out last."""
    resized: bool = False
    """Whether the capacity was set by a command of its own, and not by the first caller that asked."""

    @property
    def is_gone(self) -> bool:
        """Whether there is nothing to remember."""
        return not (self.used or self.waiting or self.resized)

    @property
    def room(self) -> int:
        return self.capacity - self.used


class Share(Struct, frozen=True, gc=False, omit_defaults=True):
    """One grant of a name with capacity, under its own token; or, with a place and no token yet, a waiter in line for one."""

    key: str
    lease_id: str
    holder: str
    weight: int
    since: int
    until: int
    token: int = 0
    place: int = 0

    @property
    def is_gone(self) -> bool:
        return not self.token and not self.place

    def released(self) -> "Share":
        """Given back: neither a grant nor a place in line."""
        return replace(self, token=0, place=0)

    @property
    def lease(self) -> Lease:
        return Lease(None, self.key, self.holder, self.lease_id, self.token, self.since, self.until)
