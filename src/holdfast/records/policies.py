"""The stored settings of queues and dicts, the policies of a queue, and its lanes: what is known of each group of messages."""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.backoff import Backoff
from holdfast.rates import Rate

GroupMode = Literal["fair", "strict"]
Order = Literal["fifo", "lifo"]
GroupDead = Literal["pass", "hold"]
LateTo = Literal["drop", "dead"]
LaneOrder = Literal["wakes", "name", "turn"]
Kind = Literal["queue", "dict"]

BACKOFF_DOUBLINGS: Final = 40
"""More doublings than any delay has room for: with fewer, every language works out the same whole number."""

SLOT_OF_GROUP: Final = 1
SLOT_OF_QUEUE: Final = 2
KEPT_WHEN_DONE: Final = 4
TOLD_GROUP: Final = 8
"""Bits of `Message.tied`: what the end of a claim has to do besides removing the message."""


class Policy(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a queue's settings say about all of its messages; each part is left out where it was never set."""

    groups: GroupMode | None = None
    group_limit: int | None = None
    """How many messages of one group may be claimed at once."""
    group_rate: Rate | None = None
    group_dead: GroupDead = "pass"
    """Whether a strict group goes on when its head died, or is paused."""
    limit: int | None = None
    """How many messages of the queue may be claimed at once."""
    rate: Rate | None = None
    order: Order = "fifo"
    aging_s: float | None = None
    """So much waiting counts as much as one step of priority."""
    max_attempts: int | None = None
    dead_letter: str | None = None
    lease_s: float | None = None
    backoff: Backoff | None = None
    late_to: LateTo = "drop"
    keep_done_s: float | None = None

    @property
    def has_lanes(self) -> bool:
        """Whether messages stand in lanes, and not in the queue's one line."""
        return self.groups is not None or self.is_ranked

    @property
    def is_ranked(self) -> bool:
        """Whether messages are claimed in another order than by priority and position."""
        return self.order != "fifo" or self.aging_s is not None

    @property
    def has_gate(self) -> bool:
        """Whether the queue as a whole has a limit or a rate."""
        return self.limit is not None or self.rate is not None

    @property
    def rules_claims(self) -> bool:
        """Whether a claim has to look at more than the line."""
        return self.has_lanes or self.has_gate or self.keep_done_s is not None

    @property
    def shapes_claims(self) -> bool:
        """Whether a claim has to know the policy at all."""
        return self.rules_claims or self.lease_s is not None

    @property
    def is_careful(self) -> bool:
        """Whether claiming ahead of need takes something away from others."""
        is_limited = self.limit is not None or self.group_limit is not None
        return is_limited or self.rate is not None or self.group_rate is not None or self.groups == "strict"

    def delay_after(self, failures: int) -> int:
        """How long after so many failures, in microseconds, a message waits for its next attempt."""
        if self.backoff is None:
            return 0
        first, most = round(self.backoff.first_s * 1_000_000), round(self.backoff.most_s * 1_000_000)
        return min(first << min(max(failures - 1, 0), BACKOFF_DOUBLINGS), most)


class Settings(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a queue or a dict as a whole."""

    kind: Kind
    name: str
    paused: bool = False
    maxsize: int | None = None
    size: int = 0
    """How many messages are ready; kept only where there is a `maxsize`."""
    created_at: int = 0
    policy: Policy | None = None
    """None where nothing of it was ever set."""
    live: int = 0
    """This and the next are as those of a `Lane`: what is claimed under the queue's limit and rate."""
    tat: int = 0
    last: int = 0
    throttled_until: int = 0

    @property
    def is_ruled(self) -> bool:
        """Whether a claim has to look at more than the line."""
        return self.throttled_until > 0 or (self.policy is not None and self.policy.rules_claims)

    @property
    def shapes_claims(self) -> bool:
        """Whether a claim has to know of it besides pause and bound."""
        return self.throttled_until > 0 or (self.policy is not None and self.policy.shapes_claims)


class OwnSettings(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was set for one group; what was not is as the queue says."""

    limit: int | None = None
    weight: int = 1
    rate: Rate | None = None
    paused: bool = False
    held: str | None = None
    """The id of the dead message for which the group is paused."""


NO_SETTINGS: Final = OwnSettings()


class Lane(Struct, frozen=True, gc=False, omit_defaults=True):
    """One group of a queue, while it has something in line or claimed, settings of its own, or a rate that is not free yet."""

    queue: str
    name: str
    turn: int = 0
    """Lanes are served in the order of these numbers; 0 while nothing is in line or claimed."""
    place: int = 0
    """Orders lanes of one turn: those that used up their credit in one claim, in the order in which they did."""
    open: bool = False
    """Whether a claim may take the first in line now."""
    live: int = 0
    """How many messages are claimed, of those that were claimed under a limit."""
    credit: int = 0
    """How many messages it still gives in this turn."""
    wakes: int | None = None
    """When time alone changes whether it is open, or whether it is needed."""
    tat: int = 0
    """When its rate is wholly free."""
    last: int = 0
    """The token of the last claim under its rate."""
    throttled_until: int = 0
    own: OwnSettings = NO_SETTINGS

    @property
    def order(self) -> tuple[int, int, str]:
        """By what open lanes are served."""
        return self.turn, self.place, self.name

    @property
    def is_gone(self) -> bool:
        """Whether there is nothing to remember: then it is removed."""
        return not (self.turn or self.live or self.wakes is not None or self.own != NO_SETTINGS)

    def gone(self) -> "Lane":
        return replace(self, turn=0, place=0, open=False, live=0, wakes=None, own=NO_SETTINGS)
