"""The terms of a lease request."""

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypedDict

from msgspec import Raw, Struct
from msgspec.structs import replace

from holdfast.arguments.where import Where
from holdfast.codec import JSON, Codec, check_name
from holdfast.codec.call_fields import AUTO_RENEW, HELD_S, MAX_HOLD_S, PLACE_S, RENEW_INTERVAL_S
from holdfast.codec.fields import CAPACITY, MAX_WAITERS, WEIGHT, Field, check_fields
from holdfast.commands import Acquire, LeaseName
from holdfast.holding.hold import Hold, interval_of


class HoldOptions(TypedDict, total=False):
    """Who holds a lease, and how it is kept."""

    holder: str | None
    """Who asks, for others to see; None, the default, is the machine and the process."""
    renew_interval_s: float | None
    """How often it is renewed while it is held; None, the default, is every third of `lease_s`."""
    max_hold_s: float | None
    """For how long it is renewed at most; None, the default, is for ever."""


class LeaseOptions(HoldOptions, Where, total=False):
    """The options that locks, elections and leases on keys share."""


IN_LINE_S: Final = 10.0
"""How long a waiter's place in line outlasts its last question; it asks every third of that."""


class Sharing(Struct, frozen=True):
    """How much of a name with capacity is asked for, and how to wait for it."""

    checked: ClassVar[tuple[Field, ...]] = (CAPACITY, WEIGHT, PLACE_S, MAX_WAITERS)

    capacity: int
    weight: int = 1
    in_line_s: float = IN_LINE_S
    max_waiters: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, self.checked)
        if self.weight > self.capacity:
            raise ValueError(f"weight must be at most the capacity of {self.capacity:,}, not {self.weight:,}")


class Terms(Struct, frozen=True):
    """What is asked for: which key, for whom, for how long, and how it is to be held."""

    checked: ClassVar[tuple[Field, ...]] = (HELD_S, AUTO_RENEW, RENEW_INTERVAL_S, MAX_HOLD_S)

    dict: str | None
    key: str
    shown_key: Any
    """The key as its user wrote it."""
    holder: str
    lease_s: float
    codec: Codec = JSON
    default: Raw | None = None
    """Stored under the key, encoded, where it is absent."""
    auto_renew: bool = True
    renew_interval_s: float | None = None
    max_hold_s: float | None = None
    label: str = ""
    """What messages call it, if not the lease on its key."""
    sharing: Sharing | None = None
    """Of a name with capacity."""

    def __post_init__(self) -> None:
        check_name(self.holder, "holder")
        check_fields(self, self.checked)
        # Now: once the lease is taken it is too late to refuse.
        interval_of(self.lease_s, self.renew_interval_s)

    def ask(self, lease_id: str, *, waits: bool) -> Acquire:
        """The command that asks for it; who waits has a place in line, where there is one."""
        if self.sharing is None:
            return Acquire(self.dict, self.key, self.holder, lease_id, self.lease_s, self.default)
        of = self.sharing
        command = Acquire(None, self.key, self.holder, lease_id, self.lease_s, capacity=of.capacity, weight=of.weight)
        return replace(command, in_line_s=of.in_line_s, max_waiters=of.max_waiters) if waits else command

    def hold(self, name: LeaseName, started: float, now: Callable[[], float]) -> Hold:
        """What its holder knows once it is granted."""
        return Hold(
            name,
            self.lease_s,
            started,
            now,
            auto_renew=self.auto_renew,
            renew_interval_s=self.renew_interval_s,
            max_hold_s=self.max_hold_s,
            label=self.describe(),
        )

    def describe(self) -> str:
        """What is asked for, for a message."""
        return self.label or f"the lease on key {self.shown_key!r} of dict {self.dict!r}"
