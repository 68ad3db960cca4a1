"""Creating a queue or a dict and changing its settings: pause, bound, policies, and the settings of a group."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from holdfast.backoff import Backoff
from holdfast.codec import check_name
from holdfast.codec.fields import (
    AGING_S,
    FORGET,
    GROUP,
    GROUP_LIMIT,
    GROUP_WEIGHT,
    KEEP_DONE_S,
    LEASE_S,
    MAX_ATTEMPTS,
    MAXSIZE,
    PAUSED,
    QUEUE_LIMIT,
    THROTTLE_S,
    Field,
    check_fields,
)
from holdfast.commands.argument_checks import KINDS, check_choice
from holdfast.commands.command import Command, Resource
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.topics import TOPICS, queue_topic, room_topic
from holdfast.commands.transaction import ALL, Draft, Transaction
from holdfast.policy_records import GroupDead, GroupMode, LateTo, Order, Policy
from holdfast.rates import Rate
from holdfast.records import Kind, Settings

CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "groups": ("fair", "strict", None),
    "group_dead": ("pass", "hold"),
    "order": ("fifo", "lifo"),
    "late_to": ("drop", "dead"),
}
"""The policies that are one of a few words."""

OF_GROUPS: Final = ("limit", "weight", "rate", "paused", "throttle_s", "forget")
"""What can be set for one group."""

DOUBLING: Final = 2.0


class Configure(Command[Settings], frozen=True):
    """Create a queue or a dict, or change its settings or those of one group; what is not given stays."""

    verb: ClassVar[Verb] = "manage"
    answer_type: ClassVar[Any] = Settings
    checked: ClassVar[tuple[Field, ...]] = (
        *(PAUSED, MAXSIZE, GROUP_LIMIT, QUEUE_LIMIT, AGING_S, MAX_ATTEMPTS, LEASE_S, KEEP_DONE_S, THROTTLE_S),
        *(GROUP, GROUP_WEIGHT, FORGET),
    )

    kind: Kind
    name: str
    paused: bool | UnsetType = UNSET
    maxsize: int | UnsetType | None = UNSET
    groups: GroupMode | UnsetType | None = UNSET
    group_limit: int | UnsetType | None = UNSET
    group_rate: Rate | UnsetType | None = UNSET
    group_dead: GroupDead | UnsetType = UNSET
    limit: int | UnsetType | None = UNSET
    rate: Rate | UnsetType | None = UNSET
    order: Order | UnsetType = UNSET
    aging_s: float | UnsetType | None = UNSET
    max_attempts: int | UnsetType | None = UNSET
    dead_letter: str | UnsetType | None = UNSET
    lease_s: float | UnsetType | None = UNSET
    backoff: Backoff | UnsetType | None = UNSET
    late_to: LateTo | UnsetType = UNSET
    keep_done_s: float | UnsetType | None = UNSET
    throttle_s: float | UnsetType = UNSET
    """For so long no message is handed out; 0 ends that."""
    group: str | None = None
    """The group that the settings are for; "" stands for messages without one."""
    weight: int | UnsetType = UNSET
    forget: bool = False
    """Whether the group is to have no settings of its own any more."""

    def __post_init__(self) -> None:
        check_choice(self.kind, KINDS, "kind")
        check_name(self.name, self.kind)
        check_fields(self, self.checked)
        given = {name for name in POLICIES if getattr(self, name) is not UNSET}
        if given or self.group is not None or self.throttle_s is not UNSET or self.weight is not UNSET or self.forget:
            check_policies(self, given)

    def named(self, names: Renamer) -> Self:
        name = names.object(self.kind, self.name, self.verb)
        dead_letter = names.later(self.dead_letter) if isinstance(self.dead_letter, str) else self.dead_letter
        return renamed(self, name=name, dead_letter=dead_letter)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield (self.kind, self.name), True

    def check(self, tx: Transaction) -> tuple[Settings | None, Settings]:
        before = tx.settings(self.kind, self.name)
        after = before or Settings(self.kind, self.name, created_at=tx.now)
        if self.paused is not UNSET:
            after = replace(after, paused=self.paused)
        if self.maxsize is not UNSET and self.maxsize != after.maxsize:
            after = replace(after, maxsize=self.maxsize, size=tx.tally(self.name).ready if self.maxsize is not None else 0)
        return before, after

    def write(self, tx: Transaction, plan: tuple[Settings | None, Settings]) -> Settings:
        before, after = plan
        if before == after:
            return after
        data = {"paused": after.paused, "maxsize": after.maxsize} if self.kind == "queue" else {}
        tx.append([Draft(TOPICS[self.kind](self.name), "configured", data)])
        tx.save_settings(after)
        if self.kind == "queue":
            tx.wake(queue_topic(self.name), ALL)
            tx.wake(room_topic(self.name), ALL)
        return after


POLICIES: Final = Policy.__struct_fields__


def check_policies(command: Configure, given: set[str]) -> None:
    """Refuse policies that no queue can have, or that are not of a group."""
    if command.kind != "queue":
        raise ValueError("policies are of queues: give kind='queue'")
    for name, choices in CHOICES.items():
        if name in given:
            check_choice(getattr(command, name), choices, name)
    for name in ("rate", "group_rate"):
        if not isinstance(getattr(command, name), Rate | UnsetType | None):
            raise TypeError(f"{name} must be a Rate or None, not {getattr(command, name)!r}")
    check_dead_letter(command.name, command.dead_letter)
    check_backoff(command.backoff)
    if command.group is None and (command.weight is not UNSET or command.forget):
        raise ValueError("weight and forget are of one group: give group, too")
    if command.group is not None and (given - set(OF_GROUPS) or command.maxsize is not UNSET):
        raise ValueError(f"of one group only these can be set: {', '.join(OF_GROUPS)}")


def check_dead_letter(queue: str, dead_letter: str | UnsetType | None) -> None:
    """Refuse a dead-letter queue that cannot be one."""
    if isinstance(dead_letter, str):
        check_name(dead_letter, "dead-letter queue")
        if dead_letter == queue:
            raise ValueError(f"queue {queue!r} cannot be its own dead-letter queue: name another")


def check_backoff(backoff: Backoff | UnsetType | None) -> None:
    """Refuse a back-off that the store cannot work out: it doubles."""
    if backoff is None or backoff is UNSET:
        return
    if not isinstance(backoff, Backoff):
        raise TypeError(f"backoff must be a Backoff or None, not {backoff!r}")
    THROTTLE_S.check(backoff.first_s)
    THROTTLE_S.check(backoff.most_s)
    if backoff.factor != DOUBLING:
        raise ValueError(f"the backoff of a queue doubles: its factor must be 2.0, not {backoff.factor!r}")
