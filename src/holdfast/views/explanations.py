"""Why a message is not running."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from holdfast.commands import Browsed
from holdfast.commands.lanes import free_at, limit_of, rate_of
from holdfast.records import Message
from holdfast.records.policies import Lane, Policy, Settings
from holdfast.results import Explanation, wall_time
from holdfast.views.groups import NO_POLICY
from holdfast.views.messages import key_of
from holdfast.wording import counted

AHEAD_MOST = 100
"""How many messages ahead of one are counted."""

GROUPS_MOST = 1_000
"""How many groups ahead of one are counted."""


class Surroundings(Struct, frozen=True):
    """What was found about a message besides itself."""

    settings: Settings | None
    first: Sequence[Message] = ()
    """Claimed messages that might hold its key."""
    line: Sequence[Message] = ()
    """What is handed out next in a queue without groups."""
    lane: Lane | None = None
    """Its group, where the queue has groups."""
    claimed: Sequence[Message] = ()
    """The claimed messages of its group."""
    head: Message | None = None
    """The first in line of its group."""
    groups_ahead: int = 0
    """How many groups are served before its own."""

    @property
    def policy(self) -> Policy:
        return NO_POLICY if self.settings is None or self.settings.policy is None else self.settings.policy


def explain(found: Browsed, around: Surroundings, *, id: str, offset_us: int) -> Explanation:
    """Why the message with this id is not running."""
    if not found.messages:
        return Explanation("absent", f"No message {id} is in the queue: it was acknowledged, taken, cancelled or dropped, or never put.")
    message, now = found.messages[0], found.now
    until = wall_time(message.until, offset_us)
    if message.state == "dead":
        return _dead(message, wall_time(message.dead_at, offset_us))
    if message.state == "done":
        at = wall_time(message.ended_at, offset_us)
        return Explanation("done", f"It is done since {_shown(at)}, by {message.holder!r}.", claimer=message.holder)
    if message.state == "buffered":
        return _behind(message, [one for one in around.first if one.key == message.key and one.held_at(now)], offset_us)
    if message.held_at(now):
        sentence = f"{message.holder!r} has claimed it {_until(until)}; this is its {_ordinal(message.attempts)} attempt."
        return Explanation("claimed", sentence, until, message.holder)
    return _waiting(message, around, now, offset_us)


def _waiting(message: Message, around: Surroundings, now: int, offset_us: int) -> Explanation:
    """Why a message that is not claimed is not handed out."""
    due = wall_time(message.position, offset_us)
    if around.settings is not None and (closed := _closed(around.settings, around.policy, now, offset_us)):
        return closed
    lane = around.lane
    if lane is not None and lane.own.paused:
        held = f" because message {lane.own.held} of it is dead: redrive or remove that, or" if lane.own.held else ":"
        return Explanation("group_paused", f"Its group {lane.name!r} is paused{held} resume the group.")
    if message.is_late(now):
        start_by = wall_time(message.start_by, offset_us)
        what = "drops it" if around.policy.late_to == "drop" else "makes it a dead letter"
        return Explanation("late", f"It had to be started by {_shown(start_by)} and nobody did: the next claim {what}.", start_by)
    if message.state == "ready" and message.position > now:
        return Explanation("delayed", f"It is delayed until {_shown(due)}.", due)
    if lane is not None and (shut := _shut(message, lane, around, now, offset_us)):
        return shut
    until = wall_time(message.until, offset_us)
    since = f"since {_shown(due)}" if message.state == "ready" else f"again since a claim of {message.holder!r} ended at {_shown(until)}"
    if lane is not None:
        return Explanation("turn", f"It has been ready {since}; {_turn(around)}.")
    return Explanation("ready", f"It has been ready {since}{_ahead(message, around.line, now)}.")


def _closed(settings: Settings, policy: Policy, now: int, offset_us: int) -> Explanation | None:
    """What keeps the whole queue from handing anything out."""
    if settings.paused:
        return Explanation("paused", "The queue is paused: nothing is handed out until it is resumed.")
    if settings.throttled_until > now:
        until = wall_time(settings.throttled_until, offset_us)
        return Explanation("throttled", f"The queue is throttled: nothing is handed out until {_shown(until)}.", until)
    if policy.limit is not None and settings.live >= policy.limit:
        return Explanation("limit", f"{settings.live:,} messages of the queue are claimed, and its limit is {policy.limit:,}.")
    if policy.rate is not None and free_at(policy.rate, settings.tat) > now:
        until = wall_time(free_at(policy.rate, settings.tat), offset_us)
        return Explanation("rate", f"The rate of the queue is used up until {_shown(until)}.", until)
    return None


def _shut(message: Message, lane: Lane, around: Surroundings, now: int, offset_us: int) -> Explanation | None:
    """What keeps its group from handing it out."""
    claimed = [one for one in around.claimed if one.held_at(now)]
    if around.policy.groups == "strict" and (head := _head(message, claimed, around.head)) is not None:
        return _behind_in_group(head, lane, now, offset_us)
    limit = limit_of(lane, around.policy)
    if limit is not None and lane.live >= limit:
        ends = min((one.until for one in claimed), default=None)
        until = wall_time(ends, offset_us)
        holders = ", ".join(sorted({repr(one.holder) for one in claimed})) or "no live holder"
        sentence = f"{counted(lane.live, 'message')} of its group {lane.name!r} are claimed, by {holders}, and its limit is {limit:,}"
        return Explanation(
            "group_busy", f"{sentence}; the first lease ends {_shown(until)}.", until, claimed[0].holder if claimed else None
        )
    free = max(free_at(rate_of(lane, around.policy), lane.tat), lane.throttled_until)
    if free > now:
        until = wall_time(free, offset_us)
        what = "throttled" if free == lane.throttled_until else "out of its rate"
        return Explanation("group_rate", f"Its group {lane.name!r} is {what} until {_shown(until)}.", until)
    return None


def _head(message: Message, claimed: Sequence[Message], head: Message | None) -> Message | None:
    """The message that a strict group must finish first, None if it is this one."""
    if claimed:
        return claimed[0]
    return None if head is None or head.id == message.id else head


def _behind_in_group(head: Message, lane: Lane, now: int, offset_us: int) -> Explanation:
    if head.held_at(now):
        until = wall_time(head.until, offset_us)
        sentence = f"Its group {lane.name!r} works on message {head.id} first, which {head.holder!r} has claimed {_until(until)}."
        return Explanation("group_behind", sentence, until, head.holder)
    if head.position > now:
        until = wall_time(head.position, offset_us)
        sentence = f"Its group {lane.name!r} waits for message {head.id}, which is tried again at {_shown(until)}."
        return Explanation("group_behind", sentence, until)
    return Explanation("group_behind", f"Its group {lane.name!r} hands out message {head.id} first.")


def _turn(around: Surroundings) -> str:
    if not around.groups_ahead:
        return "its group is the next to be served"
    ahead = around.groups_ahead
    count = f"more than {GROUPS_MOST:,} groups" if ahead > GROUPS_MOST else counted(ahead, "group")
    return f"{count} {'is' if ahead == 1 else 'are'} served before its own"


def _ahead(message: Message, line: Sequence[Message], now: int) -> str:
    due = [one.id for one in line if one.position <= now and not one.is_late(now)]
    ahead = due.index(message.id) if message.id in due else len(due) if message.state == "ready" else 0
    if not ahead:
        return ", and nobody has asked for it yet"
    count = f"more than {AHEAD_MOST} messages" if ahead > AHEAD_MOST else counted(ahead, "message")
    return f"; {count} {'is' if ahead == 1 else 'are'} ahead of it"


def _dead(message: Message, at: datetime | None) -> Explanation:
    because = f"; the last error was: {message.last_error}" if message.last_error else ""
    budget = "" if message.max_attempts is None else f" of the {message.max_attempts} it may have"
    sentence = f"It is dead since {_shown(at)}, after {counted(message.failures, 'failure')}{budget}{because}. Redrive it to try again."
    return Explanation("dead", sentence)


def _behind(message: Message, first: Sequence[Message], offset_us: int) -> Explanation:
    if not first:
        return Explanation("behind_key", f"It waits behind another message under its key {key_of(message)!r}.")
    until = wall_time(first[0].until, offset_us)
    sentence = (
        f"It waits behind message {first[0].id} under its key {key_of(message)!r}, which {first[0].holder!r} has claimed {_until(until)}."
    )
    return Explanation("behind_key", sentence, until, first[0].holder)


def _until(until: datetime | None) -> str:
    return "without end" if until is None else f"until {_shown(until)}"


def _shown(moment: datetime | None) -> str:
    return "an unknown moment" if moment is None else moment.isoformat(timespec="seconds")


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
