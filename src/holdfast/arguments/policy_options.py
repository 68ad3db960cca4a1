"""The settings of a queue and of its groups, as users give them, and the commands for them."""

from typing import Any, TypedDict

from msgspec import UNSET, UnsetType

from holdfast.arguments.options import refuse_unknown
from holdfast.backoff import Backoff
from holdfast.commands import Configure
from holdfast.rates import Rate
from holdfast.records.policies import GroupDead, GroupMode, LateTo, Order


class QueueSettings(TypedDict, total=False):
    """The settings of a queue, which all producers and workers follow. What is left out stays as it is; None takes a setting away."""

    maxsize: int | UnsetType | None
    """How many messages may be ready."""
    paused: bool | UnsetType
    """Whether nothing is handed out."""
    groups: GroupMode | UnsetType | None
    """`fair` serves groups in turns; `strict` hands out each group's messages one at a time and in order; None, as at first, neither."""
    group_limit: int | UnsetType | None
    """How many messages of one group may be claimed at once."""
    group_rate: Rate | UnsetType | None
    """How many messages of one group may be handed out in a time."""
    group_dead: GroupDead | UnsetType
    """What a strict group does when a message of it is dead: `pass`, as at first, goes on with the next; `hold` pauses the group."""
    limit: int | UnsetType | None
    """How many messages of the queue may be claimed at once."""
    rate: Rate | UnsetType | None
    """How many messages of the queue may be handed out in a time."""
    order: Order | UnsetType
    """`fifo`, as at first, or `lifo`: the last put comes first."""
    aging_s: float | UnsetType | None
    """So much waiting counts as much as one step of priority, so that low priorities are served in the end."""
    max_attempts: int | UnsetType | None
    """After how many failures a message is dead, where neither the message nor its claim says so."""
    dead_letter_queue: str | UnsetType | None
    """The queue that dead messages are put into, where neither the message nor its claim says so."""
    lease_s: float | UnsetType | None
    """How long a claim lasts that does not say so itself."""
    backoff: Backoff | UnsetType | None
    """How long a failed message waits where the one who settles it does not say so; it doubles each time."""
    late_to: LateTo | UnsetType
    """What becomes of a message that no worker started within `start_within_s`: `drop` it, as at first, or make it `dead`."""
    keep_done_s: float | UnsetType | None
    """How long messages that are done can still be looked at, in the state `done`."""


class GroupSettings(TypedDict, total=False):
    """The settings of one group. What is left out stays as it is; None returns to what the queue says."""

    limit: int | UnsetType | None
    """How many messages of the group may be claimed at once."""
    weight: int | UnsetType
    """How many messages it gives each time that its turn comes, 1 as at first."""
    rate: Rate | UnsetType | None
    """How many messages of the group may be handed out in a time."""
    paused: bool | UnsetType
    """Whether nothing of the group is handed out."""


def configuration(queue: str, settings: QueueSettings) -> Configure:
    """The command that changes these settings of a queue."""
    refuse_unknown("configure", settings, {*QueueSettings.__annotations__})
    fields: dict[str, Any] = dict(settings)
    return Configure("queue", queue, dead_letter=fields.pop("dead_letter_queue", UNSET), **fields)


def group_configuration(queue: str, group: str, settings: GroupSettings) -> Configure:
    """The command that changes these settings of a group."""
    refuse_unknown("configure of a group", settings, {*GroupSettings.__annotations__})
    return Configure("queue", queue, group=group, **settings)
