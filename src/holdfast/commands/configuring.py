"""Creating a queue or a dict and changing its settings: pause, bound, policies, and the settings of a group."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Final, Self

from msgspec import UNSET, UnsetType, to_builtins
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
from holdfast.codec.object_fields import Instance
from holdfast.commands.argument_checks import KINDS, check_choice
from holdfast.commands.command import Command, Resource
from holdfast.commands.hints import ALL
from holdfast.commands.lanes import limit_of, save_refreshed
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.rebuilding import NO_POLICY, REBUILT, check_rebuild, count_claims, rebuild, refuse_too_many
from holdfast.commands.refusal_errors import policies_clash
from holdfast.commands.topics import TOPICS, queue_topic, room_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.rates import Rate
from holdfast.records import Message, moment_in
from holdfast.records.policies import NO_SETTINGS, GroupDead, GroupMode, Kind, Lane, LateTo, Order, Policy, Settings

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
        if self.group is not None:
            check_group(tx, self, self.group, after)
            return before, after
        if self.paused is not UNSET:
            after = replace(after, paused=self.paused)
        if self.maxsize is not UNSET and self.maxsize != after.maxsize:
            after = replace(after, maxsize=self.maxsize, size=tx.tally(self.name).ready if self.maxsize is not None else 0)
        if self.throttle_s is not UNSET:
            after = replace(after, throttled_until=tx.now + moment_in(self.throttle_s) if self.throttle_s else 0)
        return before, self._with_policy(tx, after)

    def is_kept_by(self, settings: Settings) -> bool:
        """Whether the settings are already as asked. Those of a group and throttles are not looked at: they may always change something."""
        if self.group is not None or self.throttle_s is not UNSET:
            return False
        is_same = self.paused in (UNSET, settings.paused) and self.maxsize in (UNSET, settings.maxsize)
        return is_same and self._policy_after(settings) == (settings.policy or NO_POLICY)

    def _policy_after(self, settings: Settings) -> Policy:
        return replace(settings.policy or NO_POLICY, **{name: value for name in POLICIES if (value := getattr(self, name)) is not UNSET})

    def _with_policy(self, tx: Transaction, settings: Settings) -> Settings:
        policy = self._policy_after(settings)
        if policy == (settings.policy or NO_POLICY):
            return settings
        check_clashes(self.name, policy)
        check_rebuild(tx, self.name, settings.policy, policy)
        return replace(settings, policy=None if policy == NO_POLICY else policy)

    def write(self, tx: Transaction, plan: tuple[Settings | None, Settings]) -> Settings:
        before, after = plan
        if self.group is not None:
            return configure_group(tx, self, self.group, after, is_new=before is None)
        if before == after:
            return after
        data: dict[str, object] = {"paused": after.paused, "maxsize": after.maxsize} if self.kind == "queue" else {}
        if after.policy is not None or (before is not None and before.policy is not None):
            data["policy"] = None if after.policy is None else to_builtins(after.policy)
        if self.throttle_s is not UNSET:
            data["throttle_s"] = self.throttle_s
        tx.append([Draft(TOPICS[self.kind](self.name), "configured", data)])
        tx.save([after])
        rebuilt = rebuild(tx, None if before is None else before.policy, after)
        if rebuilt != after:
            tx.save([rebuilt])
        if self.kind == "queue":
            tx.hints.wake(queue_topic(self.name), ALL)
            tx.hints.wake(room_topic(self.name), ALL)
        return rebuilt


POLICIES: Final = Policy.__struct_fields__


def check_policies(command: Configure, given: set[str]) -> None:
    """Refuse policies that no queue can have, or that are not of a group."""
    if command.kind != "queue":
        raise ValueError("policies are of queues: give kind='queue'")
    for name, choices in CHOICES.items():
        if name in given:
            check_choice(getattr(command, name), choices, name)
    for rated, rate in (("rate", command.rate), ("group_rate", command.group_rate)):
        if rate is not UNSET:
            Instance(rated, Rate, optional=True).check(rate)
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


BACKOFF: Final = Instance("backoff", Backoff, optional=True)


def check_backoff(backoff: Backoff | UnsetType | None) -> None:
    """Refuse a back-off that the store cannot work out: it doubles."""
    if backoff is None or backoff is UNSET:
        return
    BACKOFF.check(backoff)
    if backoff.factor != DOUBLING:
        raise ValueError(f"the backoff of a queue doubles: its factor must be 2.0, not {backoff.factor!r}")


def check_clashes(queue: str, policy: Policy) -> None:
    """Refuse policies that one queue cannot have together."""
    if policy.groups == "strict":
        for name, is_given in (("order='lifo'", policy.order == "lifo"), ("aging_s", policy.aging_s is not None)):
            if is_given:
                raise policies_clash(queue, "groups='strict'", name)
        if policy.group_limit is not None:
            raise policies_clash(queue, "groups='strict'", "group_limit, which is 1 there")


def check_group(tx: Transaction, command: Configure, group: str, settings: Settings) -> None:
    """Refuse what one group cannot have."""
    if command.limit in (UNSET, None):
        return
    if settings.policy is not None and settings.policy.groups == "strict":
        raise policies_clash(settings.name, "groups='strict'", f"a limit of group {group!r}, which is 1 there")
    refuse_too_many(settings.name, sum(1 for _ in islice(_claimed_in(tx, settings.name, group), REBUILT + 1)), "claimed messages")


def _claimed_in(tx: Transaction, queue: str, group: str) -> Iterator[Message]:
    return (message for message in tx.browse(queue, "leased", None, ALL) if (message.group or "") == group)


def configure_group(tx: Transaction, command: Configure, group: str, settings: Settings, *, is_new: bool) -> Settings:
    """Change the settings of one group."""
    queue, policy = command.name, settings.policy or NO_POLICY
    before = tx.lanes(queue, [group]).get(group) or Lane(queue, group)
    given = {name: value for name in ("limit", "weight", "rate", "paused") if (value := getattr(command, name)) is not UNSET}
    own = replace(NO_SETTINGS if command.forget else before.own, **given)
    after = replace(before, own=own if own.paused else replace(own, held=None))
    if command.throttle_s is not UNSET:
        after = replace(after, throttled_until=tx.now + moment_in(command.throttle_s) if command.throttle_s else 0)
    if before == after:
        return settings
    facts = {"group": group, **to_builtins(replace(own, held=None)), "paused": own.paused}
    if command.throttle_s is not UNSET:
        facts["throttle_s"] = command.throttle_s
    tx.append([Draft(queue_topic(queue), "configured", facts)])
    if is_new:
        tx.save([settings])
    if policy.groups is None:
        tx.save([after])
    elif limit_of(before, policy) is None and limit_of(after, policy) is not None:
        count_claims(tx, policy, list(_claimed_in(tx, queue, group)), [after])
    else:
        save_refreshed(tx, policy, [after])
    tx.hints.wake(queue_topic(queue), ALL)
    return settings
