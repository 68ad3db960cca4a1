"""A change of one entry of a dict, its conditions, and what became of it."""

from typing import ClassVar, Final, Literal

from msgspec import Raw, Struct

from holdfast.codec.fields import BURST, BY, COST, FENCE, INTERVAL_US, LEASE, LONGEST_BURST_US, REVISION, TTL_S, Field, check_fields
from holdfast.commands.argument_checks import check_choice, check_key
from holdfast.records import Entry, MaybeRaw

NULL = Raw(b"null")
NO_INTERVAL: Final = 0
ONE: Final = 1
"""What is left out is these very objects, and needs no check."""
CHANGES = ("put", "delete", "increment", "compare", "pace")
EXPECTATIONS = ("any", "absent", "present", "value", "null", "revision")


class Change(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """What to do with one key, and on which conditions."""

    checked: ClassVar[tuple[Field, ...]] = (BY, REVISION, LEASE, FENCE, TTL_S, INTERVAL_US, BURST, COST)

    plain_fields: ClassVar[tuple[str, ...]] = (*("key", "do", "value", "by", "expect", "expected", "revision", "lease", "fence", "ttl_s"),)

    key: str
    do: Literal["put", "delete", "increment", "compare", "pace"] = "put"
    value: MaybeRaw = None
    by: int | float = 0
    expect: Literal["any", "absent", "present", "value", "null", "revision"] = "any"
    """`null` is a missing key or a stored null."""
    expected: MaybeRaw = None
    revision: int = 0
    lease: str | None = None
    """The id of the lease on this key that must be held."""
    fence: int | None = None
    """The token of a claim or a lease of this store: refused once a higher one has written the key under a fence."""
    ttl_s: float | None = None
    interval_us: int = NO_INTERVAL
    """For `pace`: the time that each unit takes, in whole microseconds."""
    burst: int = ONE
    """How many units may come at once, where none came for long."""
    cost: int = ONE
    """How many units this change is."""

    def __post_init__(self) -> None:
        check_key(self.key)
        if self.do not in CHANGES or self.expect not in EXPECTATIONS:
            check_choice(self.do, CHANGES, "do")
            check_choice(self.expect, EXPECTATIONS, "expect")
        if self._has_options():
            check_fields(self, self.checked)
        if self.do == "put" and self.value is None:
            message = f"a put of key {self.key} needs a value"
            raise ValueError(message)
        if self.expect == "value" and self.expected is None:
            message = f"key {self.key} is compared with a value, but none was given"
            raise ValueError(message)
        if self.do == "pace":
            self._check_pace()

    def _has_options(self) -> bool:
        by, revision = self.by, self.revision
        are_plain = type(by) is int and by == 0 and type(revision) is int and revision == 0
        is_paced = self.interval_us is not NO_INTERVAL or self.burst is not ONE or self.cost is not ONE
        return not are_plain or is_paced or self.fence is not None or self.ttl_s is not None or self.lease is not None

    def _check_pace(self) -> None:
        if self.interval_us < 1 or self.interval_us * self.burst > LONGEST_BURST_US:
            raise ValueError(f"interval_us must be 1 or more, and a whole burst at most {LONGEST_BURST_US:,} microseconds")
        if self.cost > self.burst:
            raise ValueError(f"cost {self.cost:,} is more than the burst of {self.burst:,}, and would never be let through: raise burst")
        if self.ttl_s is not None:
            raise ValueError("an entry that paces ends by itself: leave ttl_s out")

    def used_up_until(self, until: int | None, now: int) -> int:
        """When the time that all units took is over, of which `until` is known, if this change is let through."""
        return max(now if until is None else until, now) + self.cost * self.interval_us

    def due_in(self, until: int | None, now: int) -> int:
        """How many microseconds it is too early, 0 or less if it is not."""
        return self.used_up_until(until, now) - self.burst * self.interval_us - now

    def meets(self, entry: Entry | None) -> bool:
        match self.expect:
            case "any":
                return True
            case "absent":
                return entry is None
            case "present":
                return entry is not None
            case "null":
                return entry is None or entry.value == NULL
            case "value":
                return entry is not None and entry.value == self.expected
            case "revision":
                return (entry.revision if entry else 0) == self.revision


class Written(Struct, frozen=True, gc=False, omit_defaults=True):
    """What became of one change: the entry now in force, or the one a delete removed."""

    entry: Entry | None = None
    because: Literal["", "compare", "lease", "fence", "rate"] = ""
    """What stood in the way, nothing if it was written."""
    due_in_s: float | None = None
    """When a change that came too early for its rate may be made, if no other is made before."""

    @property
    def written(self) -> bool:
        return not self.because
