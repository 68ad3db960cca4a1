"""What follows from a change of a queue's policy: messages take other places, and claims count under limits."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.commands.hints import ALL
from holdfast.commands.lanes import lane_of, limit_of, lined, refreshed, save_refreshed, unlined
from holdfast.commands.refusal_errors import too_many_messages
from holdfast.commands.transaction import Transaction
from holdfast.records import Message
from holdfast.records.policies import KEPT_WHEN_DONE, SLOT_OF_GROUP, SLOT_OF_QUEUE, Lane, Policy, Settings

REBUILT: Final = 10_000
"""So many messages are looked at in one step at most, so that no other command waits for long."""

NO_POLICY: Final = Policy()


def moves_messages(before: Policy | None, after: Policy | None) -> bool:
    """Whether messages stand in other places under the new policy."""
    return _places(before or NO_POLICY) != _places(after or NO_POLICY)


def _places(policy: Policy) -> tuple[bool, str, float | None]:
    return policy.groups is not None, policy.order, policy.aging_s


def counts_claims(before: Policy | None, after: Policy | None) -> bool:
    """Whether claims that were not counted have to be counted now."""
    was, will = before or NO_POLICY, after or NO_POLICY
    return (not was.limit and bool(will.limit)) or (_limits_groups(will) and not _limits_groups(was))


def _limits_groups(policy: Policy) -> bool:
    return policy.groups == "strict" or (policy.groups is not None and policy.group_limit is not None)


def check_rebuild(tx: Transaction, queue: str, before: Policy | None, after: Policy | None) -> None:
    """Refuse a change that more messages would have to follow than one step may look at."""
    if moves_messages(before, after):
        tally = tx.tally(queue)
        refuse_too_many(queue, tally.ready + tally.leased + tally.ended + tally.buffered, "messages")
    elif counts_claims(before, after):
        tally = tx.tally(queue)
        refuse_too_many(queue, tally.leased + tally.ended, "claimed messages")


def refuse_too_many(queue: str, count: int, what: str) -> None:
    """Refuse more than one step may look at."""
    if count > REBUILT:
        raise too_many_messages(queue, count, REBUILT, what)


def rebuild(tx: Transaction, before: Policy | None, settings: Settings) -> Settings:
    """Let the messages of a queue follow its new policy; the settings with the claims that count."""
    queue, policy = settings.name, settings.policy or NO_POLICY
    if moves_messages(before, policy):
        _line_up(tx, queue, policy)
    elif not counts_claims(before, policy):
        return settings
    leased = list(tx.browse(queue, "leased", None, ALL))
    names = {message.lane for message in leased if message.lane is not None} if policy.groups is not None else set[str]()
    lanes = tx.lanes(queue, names)
    count_claims(tx, policy, leased, [lanes.get(name) or Lane(queue, name) for name in sorted(names)])
    return replace(settings, live=len(leased) if policy.limit is not None else 0)


def count_claims(tx: Transaction, policy: Policy, leased: Sequence[Message], lanes: Sequence[Lane]) -> None:
    """Count these messages, all that are claimed in these lanes, as claimed under the limits."""
    limited = {lane.name for lane in lanes if limit_of(lane, policy) is not None}
    live = Counter(message.lane for message in leased)
    bits = SLOT_OF_QUEUE if policy.limit is not None else 0
    tied = [(message, message.tied | bits | (SLOT_OF_GROUP if message.lane in limited else 0)) for message in leased]
    tx.save([replace(message, tied=ties) for message, ties in tied if ties != message.tied])
    counted = [replace(lane, live=live[lane.name] if lane.name in limited else lane.live) for lane in lanes]
    save_refreshed(tx, policy, counted)


def _line_up(tx: Transaction, queue: str, policy: Policy) -> None:
    """Give every living message a new place."""
    ready = [lined(unlined(message), policy, tx.now) for message in tx.browse(queue, "ready", None, ALL)]
    leased = [lined(unlined(message), policy, tx.now) for message in tx.browse(queue, "leased", None, ALL)]
    leased = [replace(message, tied=message.tied & ~SLOT_OF_GROUP) for message in leased]
    buffered = tx.browse(queue, "buffered", None, ALL)
    copies = [replace(unlined(message), lane=lane_of(message, policy)) for message in buffered]
    tx.save([*ready, *leased, *copies])
    known = {lane.name: replace(lane, live=0, turn=0, place=0) for lane in tx.find_lanes(queue, "name", ALL)}
    names = {message.lane for message in ready if message.lane is not None} if policy.groups is not None else set[str]()
    lanes = [known.get(name) or Lane(queue, name) for name in sorted({*known, *names})]
    if policy.groups is not None:
        save_refreshed(tx, policy, lanes)
    else:
        tx.save([refreshed(lane, policy, None, tx.now, 0) for lane in lanes])


def take_in(tx: Transaction, queue: str, messages: Sequence[Message]) -> None:
    """Add messages of another store, each at the place that the queue's policy gives it."""
    settings = tx.settings("queue", queue)
    if settings is None or settings.policy is None:
        tx.add([unlined(message) for message in messages])
        return
    policy = settings.policy
    placed = [_placed(message, policy, tx.now) for message in messages]
    leased = [message for message in placed if message.state == "leased"]
    if policy.limit is not None and leased:
        tx.save([replace(settings, live=settings.live + len(leased))])
    tx.add(placed)
    if policy.groups is not None:
        live = Counter(message.lane for message in leased) if _limits_groups(policy) else Counter[str | None]()
        names = {message.lane for message in placed if message.lane is not None and message.state in ("ready", "leased")}
        known = tx.lanes(queue, names)
        lanes = [known.get(name) or Lane(queue, name) for name in sorted(names)]
        save_refreshed(tx, policy, [replace(lane, live=lane.live + live[lane.name]) for lane in lanes])


def take_in_lanes(tx: Transaction, lanes: Sequence[Lane]) -> None:
    """Save what groups of another store have of their own."""
    for queue in sorted({lane.queue for lane in lanes}):
        settings = tx.settings("queue", queue)
        policy = NO_POLICY if settings is None or settings.policy is None else settings.policy
        save_refreshed(tx, policy, [lane for lane in lanes if lane.queue == queue])


def _placed(message: Message, policy: Policy, now: int) -> Message:
    if message.state in ("ready", "leased"):
        placed = lined(message if policy.groups == "strict" else unlined(message), policy, now)
        return replace(placed, tied=_ties(policy)) if message.state == "leased" else placed
    return replace(unlined(message), lane=lane_of(message, policy)) if message.state == "buffered" else unlined(message)


def _ties(policy: Policy) -> int:
    kept = KEPT_WHEN_DONE if policy.keep_done_s is not None else 0
    return kept | (SLOT_OF_QUEUE if policy.limit is not None else 0) | (SLOT_OF_GROUP if _limits_groups(policy) else 0)
