"""The lanes of a queue: which groups may be claimed from, in which order, and how much each gives.

A lane is open while a claim may take its first message. `refreshed` alone decides that, from what the lane is; whatever changes a lane
ends with it. Lanes take turns: the one whose turn has the lowest number gives as many messages as its weight.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands.topics import queue_topic
from holdfast.commands.transaction import Transaction
from holdfast.rates import Rate
from holdfast.records import Message, moment_in
from holdfast.records.policies import SLOT_OF_GROUP, SLOT_OF_QUEUE, Lane, Policy, Settings

FARTHEST: Final = 2**53 - 1
"""Ranks beyond are cut: every store keeps whole numbers up to this one."""

NOTHING: Final[Mapping[str, int | None]] = {}


def lined(message: Message, policy: Policy | None, now: int) -> Message:
    """The ready message where it stands in its queue: in its lane, out of line while it is not due, or in the one line for all."""
    if policy is None or not policy.has_lanes:
        return message if message.lane is None else replace(message, lane=None, level=0, rank=None)
    lane = lane_of(message, policy)
    if policy.groups == "strict" and message.rank is not None and message.lane == lane:
        return message  # It keeps its place, and holds the others up until it is due.
    if message.position > now:
        return replace(message, lane=lane, level=0, rank=None)
    return replace(message, lane=lane, level=level_of(policy, message.priority), rank=rank_of(policy, message.priority, message.position))


def lane_of(message: Message, policy: Policy | None) -> str | None:
    """The lane in which a message stands."""
    if policy is None or not policy.has_lanes:
        return None
    return (message.group or "") if policy.groups is not None else ""


def level_of(policy: Policy, priority: int) -> int:
    """Messages of a higher level come first in their lane."""
    return 0 if policy.groups == "strict" or policy.aging_s is not None else priority


def rank_of(policy: Policy, priority: int, position: int) -> int:
    """The place of a message among those of its level."""
    rank = -position if policy.order == "lifo" else position
    if policy.aging_s is not None:
        rank -= priority * moment_in(policy.aging_s)
    return max(-FARTHEST, min(FARTHEST, rank))


def unlined(message: Message) -> Message:
    """The message without a place in any queue."""
    return message if message.lane is None else replace(message, lane=None, level=0, rank=None)


def limit_of(lane: Lane, policy: Policy) -> int | None:
    """How many messages of the lane may be claimed at once."""
    return 1 if policy.groups == "strict" else policy.group_limit if lane.own.limit is None else lane.own.limit


def rate_of(lane: Lane, policy: Policy) -> Rate | None:
    """How fast messages of the lane may be claimed."""
    return policy.group_rate if lane.own.rate is None else lane.own.rate


def free_at(rate: Rate | None, tat: int) -> int:
    """From when on the rate lets one through."""
    return 0 if rate is None else tat - (rate.burst - 1) * rate.interval_us


def allowed(rate: Rate | None, tat: int, now: int, most: int) -> int:
    """How many the rate lets through now, `most` where there is no rate."""
    if rate is None:
        return most
    room = now + (rate.burst - 1) * rate.interval_us - max(tat, now)
    return min(most, room // rate.interval_us + 1) if room >= 0 else 0


def used(rate: Rate, tat: int, now: int, count: int) -> int:
    """When the rate is wholly free after so many more."""
    return max(tat, now) + count * rate.interval_us


def refreshed(lane: Lane, policy: Policy, first_at: int | None, now: int, number: int) -> Lane:
    """The lane as it follows from the position of its first message in line, its claims, its rate and its settings.

    `number` is its turn if it has none.
    """
    own, limit = lane.own, limit_of(lane, policy)
    if first_at is None and not lane.live:
        # Of a queue without groups only settings are kept: no claim would look when it wakes.
        ends = 0 if policy.groups is None else max(lane.tat, lane.throttled_until)
        return replace(lane, turn=0, place=0, credit=0, open=False, wakes=ends if ends > now else None)
    opens = max(free_at(rate_of(lane, policy), lane.tat), lane.throttled_until)
    if first_at is not None and policy.groups == "strict":
        opens = max(opens, first_at)
    may = first_at is not None and not own.paused and (limit is None or lane.live < limit)
    begins = lane.turn == 0
    return replace(
        lane,
        turn=number if begins else lane.turn,
        credit=own.weight if begins else min(lane.credit, own.weight),
        open=may and opens <= now,
        wakes=opens if may and opens > now else None,
    )


class Touched(Struct):
    """What a step does to a lane: claims that ended, and messages that came."""

    ended: int = 0
    arrived: int = 0
    may_close: bool = False
    """Whether it did more than add messages that are due: only then an open lane may have to be closed."""


def follow(tx: Transaction, left: Iterable[Message], entered: Iterable[Message], number: int | None = None) -> None:
    """Let the lanes and limits follow messages that changed: as they were where they left, and as they are where they came to.

    To be called behind all writes of a step. `number` is the turn of a lane that begins; by default that of the newest event.
    """
    touched: dict[str, dict[str, Touched]] = {}
    freed: dict[str, int] = {}
    for message in left:
        is_held, tied = message.state == "leased", message.tied
        if is_held and tied & SLOT_OF_QUEUE:
            freed[message.queue] = freed.get(message.queue, 0) + 1
        # What is claimed without a slot stands in no line, and its lane knows nothing of it.
        if message.lane is not None and (not is_held or tied & SLOT_OF_GROUP):
            lane = touched.setdefault(message.queue, {}).setdefault(message.lane, Touched())
            lane.ended += is_held
            lane.may_close = True
    for message in entered:
        if message.lane is not None and message.state == "ready":
            lane = touched.setdefault(message.queue, {}).setdefault(message.lane, Touched())
            lane.arrived += 1
            lane.may_close = lane.may_close or (message.rank is not None and message.position > tx.now)
    for queue, count in freed.items():
        free_slots(tx, queue, count)
    for queue, lanes in touched.items():
        refresh(tx, tx.settings("queue", queue), lanes, number)


def free_slots(tx: Transaction, queue: str, count: int) -> None:
    """Let so many fewer messages be claimed under the queue's limit."""
    settings = tx.settings("queue", queue)
    if settings is None:
        return
    limit = None if settings.policy is None else settings.policy.limit
    tx.save([replace(settings, live=max(0, settings.live - count))])
    if limit is not None and settings.live >= limit:
        tx.hints.wake(queue_topic(queue), count)


def give_back(tx: Transaction, queue: str, messages: Sequence[Message]) -> None:
    """Give back what claims used of rates that nothing was begun of, where no later claim was made under these rates."""
    settings = tx.settings("queue", queue)
    if settings is None or settings.policy is None:
        return
    policy, counts = settings.policy, Counter(message.token for message in messages)
    if policy.rate is not None and settings.last in counts:
        tx.save([replace(settings, tat=settings.tat - counts[settings.last] * policy.rate.interval_us)])
    lanes = tx.lanes(queue, {message.lane for message in messages if message.lane is not None}) if policy.groups is not None else {}
    changed = []
    for lane in lanes.values():
        rate, count = rate_of(lane, policy), sum(m.lane == lane.name and m.token == lane.last for m in messages)
        if rate is not None and count:
            changed.append(replace(lane, tat=lane.tat - count * rate.interval_us))
    if changed:
        tx.save(changed)
        refresh(tx, settings, {lane.name: Touched() for lane in changed})


def refresh(tx: Transaction, settings: Settings | None, touched: Mapping[str, Touched], number: int | None = None) -> None:
    """Bring these lanes of a queue up to date, and wake waiters for those that opened."""
    if settings is None or settings.policy is None or settings.policy.groups is None or not touched:
        _announce_plain(tx, settings, touched)
        return
    queue, policy = settings.name, settings.policy
    known = tx.lanes(queue, touched)
    lanes = []
    for name, change in touched.items():
        lane = known.get(name) or Lane(queue, name)
        if lane.open and not change.may_close:
            tx.hints.wake(queue_topic(queue), change.arrived)
        else:
            lanes.append(replace(lane, live=max(0, lane.live - change.ended)) if change.ended else lane)
    for lane in save_refreshed(tx, policy, lanes, number):
        announce_lane(tx, known.get(lane.name), lane, touched[lane.name].arrived)


def announce_lane(tx: Transaction, before: Lane | None, lane: Lane, arrived: int) -> None:
    """Wake waiters of the queue for a lane that gives something now, or sooner than it would have."""
    if lane.open and (arrived or before is None or not before.open):
        tx.hints.wake(queue_topic(lane.queue), max(1, arrived))
    elif lane.wakes is not None and (before is None or before.wakes is None or lane.wakes < before.wakes):
        tx.hints.wake(queue_topic(lane.queue), 1)


def _announce_plain(tx: Transaction, settings: Settings | None, touched: Mapping[str, Touched]) -> None:
    """Wake waiters of a queue whose lanes have no rows."""
    count = sum(change.arrived for change in touched.values())
    if settings is not None and count:
        tx.hints.wake(queue_topic(settings.name), count)


def save_refreshed(
    tx: Transaction, policy: Policy, lanes: Sequence[Lane], number: int | None = None, firsts: Mapping[str, int | None] = NOTHING
) -> list[Lane]:
    """Bring lanes of one queue up to date, and save them; return them as they are now.

    `firsts` has the positions of the first in line of those of which they are known.
    """
    if not lanes:
        return []
    unknown = {lane.name: 1 for lane in lanes if lane.name not in firsts}
    if unknown:
        heads = tx.lane_heads(lanes[0].queue, unknown)
        firsts = {**firsts, **{name: heads[name][0].position if name in heads else None for name in unknown}}
    if number is None:
        number = tx.latest() if any(not lane.turn for lane in lanes) else 0
    after = [refreshed(lane, policy, firsts[lane.name], tx.now, number) for lane in lanes]
    tx.save(after)
    return after


class Given(Struct):
    """A lane that is asked for messages, how many it could give at most, and how it was served."""

    lane: Lane
    most: int
    taken: int = 0
    credit: int = 0
    renewed_at: int = 0
    """How many messages were given in all when it last used up its credit; 0 if it did not."""

    def served(self, token: int) -> Lane:
        """The lane behind a claim: who used up the credit goes to the end of the round, in that order."""
        if not self.renewed_at:
            return replace(self.lane, credit=self.credit)
        return replace(self.lane, turn=token, place=self.renewed_at, credit=self.credit)


class Shares(Struct):
    """Which lanes give a message, by their place, one after the other, and what that leaves of their turns."""

    given: list[Given]
    order: list[int] = []


def share_out(lanes: Sequence[tuple[Lane, int]], room: int) -> Shares:
    """Let the lanes give in rounds, in this order; each comes with how many messages it can give at most."""
    shares, order = Shares([Given(lane, most, credit=lane.credit) for lane, most in lanes]), list[int]()
    while len(order) < room:
        before = len(order)
        for place, one in enumerate(shares.given):
            count = min(one.credit, one.most - one.taken, room - len(order))
            order += [place] * count
            one.taken += count
            one.credit -= count
            if not one.credit:
                one.credit, one.renewed_at = one.lane.own.weight, len(order)
        if len(order) == before:
            break
    shares.order = order
    return shares
