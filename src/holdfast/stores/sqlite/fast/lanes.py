"""Messages of groups on the fast path: putting them into lanes, claiming and settling them.

What a lane becomes is said by `refreshed`, as everywhere; only what it is worked out from is read at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from holdfast.commands import Claim, Claimed, Item, Put, Puts
from holdfast.commands.endings import promote_keys, told
from holdfast.commands.lanes import Touched, announce_lane, level_of, rank_of, refresh, refreshed
from holdfast.commands.one_each import choose_one_each
from holdfast.commands.plain import uses_only
from holdfast.commands.putting import KEPT
from holdfast.commands.topics import queue_topic
from holdfast.records.policies import SLOT_OF_GROUP, TOLD_GROUP, Lane, Policy
from holdfast.stores.files.extra import EXTRA, PUT_FIELDS
from holdfast.stores.sqlite.counts import ONE_LEASED, ONE_READY
from holdfast.stores.sqlite.fast.sql_transaction import SqlTransaction
from holdfast.stores.sqlite.lanes import OPEN, decode_policy, read_lane
from holdfast.stores.sqlite.rows import bindable, group_in, is_large
from holdfast.stores.sqlite.statements import SQL, fixed

DONE: Final = {"to": "done"}

PUT_LINED: Final = fixed(SQL["put"], {7: "null", 15: "null"})
PUT_LINED_PLAIN: Final = fixed(SQL["put"], dict.fromkeys((5, 6, 7, 9, 15), "null"))
"""`put` of a message without a key, and of one without options, too."""

MOVE_LANE_AWAKE: Final = fixed(SQL["move_lane"], {8: "null"})
"""`move_lane` of a lane that time alone does not change, as are most."""

POLICY, MAXSIZE, IS_TAKEN, LANE_TO_PUT = 0, 1, 2, 3
"""Columns of `lane_to_put`."""

FIRST_AT, LANE_IN_LINE = 1, 2
"""Columns of `lane_in_line`, whose first is the policy, too."""

_has_no_options: Callable[[Item], bool] = uses_only(Item, "id", "value", "if_ready", "if_leased", "priority", "group", *PUT_FIELDS)
_is_item: Callable[[Item], bool] = uses_only(Item, "id", "value", "if_ready", "if_leased", *(name for name in KEPT if name != "key"))


def put_in_lanes(tx: SqlTransaction, command: Put) -> Puts | None:
    """Messages without keys that are due, of ordinary size, into a queue that has groups and no bounds."""
    items, queue = command.items, command.queue
    lanes, counts, policy = dict[str, tuple[Any, ...]](), dict[str, int](), None
    for item in items:
        if is_large(item.value) or not _is_item(item):
            return None
        lane = item.group or ""
        row = tx.sql.execute(SQL["lane_to_put"], (queue, lane, item.id)).fetchone()
        policy = None if row is None or row[POLICY] is None else decode_policy(row[POLICY])
        if policy is None or policy.groups is None:
            tx.laned.discard(queue)
            return None
        if row[MAXSIZE] is not None or row[IS_TAKEN]:
            return None
        lanes[lane] = row[LANE_TO_PUT:]
        counts[lane] = counts.get(lane, 0) + 1
    if policy is None:
        return None
    ids, topic = [item.id for item in items], queue_topic(queue)
    token = _put(tx, topic, items, ids, [_row(tx.now, queue, item, policy) for item in items])
    for name, count in counts.items():
        if lanes[name][OPEN]:
            tx.hints.wake(topic, count)
        else:
            _let_in(tx, policy, Lane(queue, name) if lanes[name][0] is None else read_lane(lanes[name]), count, token)
    return Puts(ids, [True] * len(ids))


def _put(tx: SqlTransaction, topic: str, items: Sequence[Item], ids: list[str], rows: list[tuple[object, ...]]) -> int:
    """Put the messages of these rows; return the number of the event."""
    if len(rows) > 1:
        tx.sql.executemany(PUT_LINED, rows)
    elif _has_no_options(items[0]):
        queue, message_id, priority, now, *_, value, extra, lane, level, rank = rows[0]
        tx.sql.execute(PUT_LINED_PLAIN, (queue, message_id, priority, now, now, value, extra, lane, level, rank))
    else:
        tx.sql.execute(PUT_LINED, rows[0])
    groups = [item.group for item in items]
    facts = {"ids": ids} if groups.count(None) == len(groups) else {"ids": ids, "groups": groups}
    return tx.tell(topic, "put", facts, len(ids) * ONE_READY)


def _row(now: int, queue: str, item: Item, policy: Policy) -> tuple[object, ...]:
    """The parameters of `PUT_LINED`."""
    level, rank = level_of(policy, item.priority), rank_of(policy, item.priority, now)
    return (
        *(queue, item.id, item.priority, now, item.max_attempts, item.dead_letter, now, item.metadata),
        *(bindable(item.value), EXTRA.write(item), item.group or "", level, rank),
    )


def _let_in(tx: SqlTransaction, policy: Policy, lane: Lane, count: int, token: int) -> None:
    """Let a lane that is not open follow messages that came into line."""
    if lane.turn:
        refresh(tx, tx.settings("queue", lane.queue), {lane.name: Touched(arrived=count)}, token)
    else:
        after = refreshed(lane, policy, tx.now, tx.now, token)  # Nothing was in line before.
        tx.save([after])
        announce_lane(tx, lane, after, count)


def claim_from_lanes(tx: SqlTransaction, command: Claim) -> Claimed | None:
    """One message of each of the first open lanes, while nothing is overdue."""
    policy, opened = tx.look_at_lanes(command.queue, command.limit)
    if policy is None or policy.groups is None or opened.is_overdue:
        return None
    each = choose_one_each(tx, command, policy, opened.lanes)
    if each is None or not each.chosen:
        return None
    draft, count = each.draft, len(each.chosen)
    token = tx.tell(draft.topic, draft.event, draft.facts, count * (ONE_LEASED - ONE_READY))
    messages = each.leased(token)
    tx.lease_rows(messages, *each.terms(token))
    _change_lanes(tx, [(one.lane, lane) for one, lane in zip(opened.lanes, each.served(token), strict=False)])
    return Claimed(messages, careful=policy.is_careful)


class Settled(NamedTuple):
    """A message that is done: its key, its group, and its lane if it was claimed under a limit of that."""

    key: str | None
    group: str | None
    slot: str | None


PLAIN: Final = Settled(None, None, None)
"""What most messages are: nothing follows their end."""


def settled_as(key: str | None, _is_apart: int, tied: int, lane: str | None, extra: bytes | None) -> Settled:
    """What the columns of `settle` and `settle_one` say."""
    return Settled(key, (lane or group_in(extra)) if tied & TOLD_GROUP else None, lane if tied & SLOT_OF_GROUP else None)


def told_settled(ids: Sequence[str], settled: Sequence[Settled]) -> Mapping[str, object]:
    """What the event says about messages that are done."""
    if settled.count(PLAIN) == len(settled):
        return {"ids": ids, **DONE}
    groups = [one.group for one in settled]
    return told(ids, [one.key for one in settled], DONE if groups.count(None) == len(groups) else {"groups": groups, **DONE})


def follow_settled(tx: SqlTransaction, queue: str, settled: Collection[Settled]) -> None:
    """Do what the ends of these claims ask for."""
    settled = [one for one in settled if one is not PLAIN]
    keys, ended = list[str](), dict[str, int]()
    for one in settled:
        if one.key is not None:
            keys.append(one.key)
        if one.slot is not None:
            ended[one.slot] = ended.get(one.slot, 0) + 1
    if keys:
        promote_keys(tx, queue, keys)
    if ended:
        _end_claims(tx, queue, ended)


def _end_claims(tx: SqlTransaction, queue: str, ended: Mapping[str, int]) -> None:
    """Let lanes follow claims under their limits that ended."""
    changes = []
    for lane, count in ended.items():
        row: tuple[Any, ...] | None = tx.sql.execute(SQL["lane_in_line"], (queue, lane, tx.now)).fetchone()
        if row is None or row[POLICY] is None:
            continue
        before = read_lane(row[LANE_IN_LINE:])
        now = replace(before, live=max(0, before.live - count))
        changes.append((before, refreshed(now, decode_policy(row[POLICY]), row[FIRST_AT], tx.now, before.turn)))
    _change_lanes(tx, changes)
    for before, after in changes:
        announce_lane(tx, before, after, 0)


def _change_lanes(tx: SqlTransaction, changes: Sequence[tuple[Lane, Lane]]) -> None:
    """Save lanes that are there, as `before`: in many, only a count changed."""
    for before, lane in changes:
        if lane.is_gone:
            tx.save([lane])
        elif lane.turn != before.turn or lane.open != before.open or lane.place != before.place or lane.wakes != before.wakes:
            place = (lane.turn, lane.place, lane.open, lane.live, lane.credit)
            if lane.wakes is None:
                tx.sql.execute(MOVE_LANE_AWAKE, (*place, lane.queue, lane.name))
            else:
                tx.sql.execute(SQL["move_lane"], (*place, lane.queue, lane.name, lane.wakes))
        else:
            tx.sql.execute(SQL["save_live"], (lane.live, lane.credit, lane.queue, lane.name))
