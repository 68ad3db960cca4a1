"""The commonest commands in as few statements as there can be.

Each answers as the command's own halves would, or None with nothing done where it takes those to decide.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Raw, json

from holdfast.commands import Claim, Claimed, Command, Held, Item, Put, Puts, Settle, Together
from holdfast.commands.allowance import ANSWER_BYTES, Allowance
from holdfast.commands.checkpoint import carry_out_checkpoint
from holdfast.commands.endings import told
from holdfast.commands.plain import uses_only
from holdfast.commands.topics import key_topic, queue_topic
from holdfast.records import Message, Receipt, ReturnTo, end_of, moment_in
from holdfast.stores.sqlite.counts import ONE_LEASED, ONE_READY
from holdfast.stores.sqlite.fast.lanes import PLAIN, Settled, claim_from_lanes, follow_settled, put_in_lanes, settled_as, told_settled
from holdfast.stores.sqlite.fast.sql_transaction import SqlTransaction
from holdfast.stores.sqlite.lanes import decode_policy
from holdfast.stores.sqlite.queues import HAS_OVERDUE, HEAD_VALUE, IS_ODD, MAXSIZE, PAUSED, POLICY, as_json
from holdfast.stores.sqlite.rows import bindable, is_large
from holdfast.stores.sqlite.statements import SQL, fixed

IN_LINE = {11: "null", 12: "null", 13: "0", 14: "null"}
"""Parameters of `put`, of a message without extra fields and without a lane."""
NO_OPTIONS = dict.fromkeys((5, 6, 7, 9), "null")
NO_KEY = {15: "null"}

PUT = fixed(SQL["put"], IN_LINE | NO_KEY)
PUT_PLAIN = fixed(SQL["put"], IN_LINE | NO_OPTIONS | NO_KEY)
PUT_KEYED = fixed(SQL["put"], IN_LINE | NO_OPTIONS)
PUT_KEYED_WITH_OPTIONS = fixed(SQL["put"], IN_LINE)

IS_ODD_END, N, IS_APART = 1, 2, 4
"""Columns of `settle`."""

THROTTLED = "{}"
"""What stands for the policy of a queue that hands nothing out for a while."""

OPTIONS = ("delay_s", "at", "max_attempts", "dead_letter", "start_within_s", "metadata")
"""What the statements know of an item besides its id, value and priority."""

is_plain: Callable[[Item], bool] = uses_only(Item, "id", "value", "priority")
_is_item = uses_only(Item, "id", "value", "if_ready", "if_leased", "priority", *OPTIONS)
_has_no_options = uses_only(Item, "id", "value", "if_ready", "if_leased", "priority", "key")
_is_keyed = uses_only(Item, "id", "value", "if_ready", "if_leased", "priority", "key", *OPTIONS)
_options = attrgetter(*OPTIONS)


def answer(tx: SqlTransaction, command: Command[Any]) -> Puts | Claimed | Held | list[Any] | None:
    """The command's answer, if it is one of the commonest in its simple form."""
    if type(command) is Put:
        if command.queue not in tx.laned and command.plain("key"):
            return _put(tx, command)
        return put_in_lanes(tx, command) if command.plain("group") else None
    if type(command) is Settle:
        return _settle(tx, command) if command.to == "done" and command.plain() else None
    if type(command) is Together:
        return carry_out_checkpoint(tx, command) if command.plain() else None
    return _claim(tx, command) if type(command) is Claim and command.plain() else None


def _put(tx: SqlTransaction, command: Put) -> Puts | None:
    """Messages of ordinary size, several only without keys, into a queue that exists and has no bounds."""
    items, queue = command.items, command.queue
    ids, key = [item.id for item in items], items[0].key
    is_put = _put_one(tx, queue, items[0]) if len(items) == 1 else put_many(tx, queue, items, set(ids))
    if not is_put:
        return None
    topic = queue_topic(queue)
    tx.tell(topic, "put", {"ids": ids} if key is None else {"ids": ids, "keys": [key]}, len(ids) * ONE_READY)
    tx.hints.wake(topic, len(ids))
    if key is not None:
        tx.hints.wake(key_topic(queue, key), 1)
    return Puts(ids, [True] * len(ids))


def _put_one(tx: SqlTransaction, queue: str, item: Item) -> bool:
    """Put it unless its id is taken, or its key: then its policies decide."""
    if is_large(item.value):
        return False
    if is_plain(item):
        done = tx.sql.execute(PUT_PLAIN, (queue, item.id, item.priority, tx.now, tx.now, bindable(item.value)))
    elif item.key is not None and _has_no_options(item):
        done = tx.sql.execute(PUT_KEYED, (queue, item.id, item.priority, tx.now, tx.now, bindable(item.value), item.key))
    elif item.key is not None and _is_keyed(item):
        done = tx.sql.execute(PUT_KEYED_WITH_OPTIONS, (*_row(tx, queue, item), item.key))
    elif _is_item(item):
        done = tx.sql.execute(PUT, _row(tx, queue, item))
    else:
        return False
    return bool(done.rowcount == 1)


def put_many(tx: SqlTransaction, queue: str, items: Sequence[Item], ids: set[str]) -> bool:
    """Put the messages, if a queue without bounds is there for them, no id is taken, and they have no keys and are of ordinary size."""
    if not items or len(ids) != len(items) or any(is_large(item.value) or not _is_item(item) for item in items):
        return False
    settings = tx.settings("queue", queue)
    if settings is None or settings.maxsize is not None or any(tx.messages(queue, ids)):
        return False
    if settings.policy is not None and settings.policy.has_lanes:
        return False
    shared = list(map(_options, items))
    if shared.count(shared[0]) == len(items):
        _put_each(tx, queue, items)
    else:
        tx.sql.executemany(PUT, [_row(tx, queue, item) for item in items])
    return True


def _put_each(tx: SqlTransaction, queue: str, items: Sequence[Item]) -> None:
    values, places = bytearray(), list[tuple[str, int, int, int]]()
    for item in items:
        begin = len(values)
        values += item.value
        places.append((item.id, item.priority, begin + 1, len(values) - begin))
    _, _, _, *shared, _ = _row(tx, queue, items[0])
    tx.sql.execute(SQL["put_each"], (queue, *shared, values, as_json(places)))


def _row(tx: SqlTransaction, queue: str, item: Item) -> tuple[object, ...]:
    position = tx.now
    if item.delay_s:
        position += moment_in(item.delay_s)
    if item.at is not None:
        position = max(position, item.at - tx.wall_offset)
    start_by = None if item.start_within_s is None else position + moment_in(item.start_within_s)
    return (
        queue,
        item.id,
        item.priority,
        position,
        item.max_attempts,
        item.dead_letter,
        start_by,
        tx.now,
        item.metadata,
        bindable(item.value),
    )


def _claim(tx: SqlTransaction, command: Claim) -> Claimed | None:
    """As many messages as asked for, of one priority, while no lease has ended."""
    queue, now = command.queue, tx.now
    if queue in tx.laned:
        return claim_from_lanes(tx, command)
    rows = tx.head_rows(queue, command.limit)
    if len(rows) < command.limit or not is_plain_line(rows[0]):
        tx.heads_seen = rows
        return None
    ids = [row[1] for row in rows]
    enough, is_odd = Allowance(), has_odd(rows)
    found = enough.fitting(tx.messages(queue, ids, values=True)) if is_odd else []
    is_told = any(message.group is not None for message in found)  # The rules tell of groups.
    if enough.is_cut or is_told or (not is_odd and sum(len(row[HEAD_VALUE]) for row in rows) > ANSWER_BYTES):
        tx.heads_seen = rows
        return None
    facts = told(ids, [row[2] for row in rows], {"holder": command.holder})
    token = tx.tell(queue_topic(queue), "claimed", facts, len(ids) * (ONE_LEASED - ONE_READY))
    until = end_of(now, command.lease_s)
    claim = (command.holder, token, now, until, command.expired_to)
    messages = [message.leased(*claim) for message in found] if is_odd else [leased(queue, row, claim) for row in rows]
    tx.lease_rows(messages, command.holder, token, until, command.expired_to)
    return Claimed(messages)


def is_plain_line(row: tuple[Any, ...]) -> bool:
    """Whether a claim may take the first in line as they stand: a row of `heads` says so."""
    if row[HAS_OVERDUE] or row[PAUSED] or row[MAXSIZE] is not None:
        return False
    return row[POLICY] is None or (row[POLICY] != THROTTLED and not decode_policy(row[POLICY]).shapes_claims)


def leased(queue: str, row: tuple[Any, ...], claim: tuple[str, int, int, int, ReturnTo]) -> Message:
    """The message of a row of `heads`, as the claim makes it."""
    n, message_id, key, priority, position, attempts, failures, created_at, value = row[:IS_ODD]
    rest: tuple[Any, ...] = (n, key, priority, position, "leased", attempts + 1, failures, None, None, None, created_at, *claim)
    return Message(queue, message_id, Raw(value), *rest)


def has_odd(rows: list[tuple[Any, ...]]) -> bool:
    """Whether one of the rows of `heads` leaves something out."""
    return bool(rows[0][IS_ODD]) if len(rows) == 1 else any(row[IS_ODD] for row in rows)


def _settle(tx: SqlTransaction, command: Settle) -> Held | None:
    """Claims of one queue that are done; several only if each may be lost for itself."""
    receipts = command.receipts
    if len(receipts) == 1:
        return _settle_one(tx, receipts[0])
    if not receipts or command.all_or_none or any(receipt.queue != receipts[0].queue for receipt in receipts):
        return None
    queue = receipts[0].queue
    claims = {receipt.id: receipt.token for receipt in receipts}
    gone = settle_many(tx, queue, claims)
    if not gone:
        return None
    ids = list(claims) if len(gone) == len(claims) else [message_id for message_id in claims if message_id in gone]
    settled = [gone[message_id] for message_id in ids]
    tx.tell(queue_topic(queue), "settled", told_settled(ids, settled), -len(ids) * ONE_LEASED)
    follow_settled(tx, queue, settled)
    return Held([message_id in gone for message_id in claims])


def settle_many(tx: SqlTransaction, queue: str, claims: Mapping[str, int]) -> dict[str, Settled]:
    """Remove what these claims, tokens by id, still hold; return which of them did. Counts and lanes have to follow yet."""
    rows = tx.sql.execute(SQL["settle"], (json.encode(claims).decode(), queue, tx.now)).fetchall()
    apart = [row[N] for row in rows if row[IS_APART]]
    if apart:
        tx.sql.execute(SQL["drop_values"], (as_json(apart),))
    return {row[0]: settled_as(*row[IS_APART - 1 :]) if row[IS_ODD_END] else PLAIN for row in rows}


def _settle_one(tx: SqlTransaction, receipt: Receipt) -> Held | None:
    queue, message_id = receipt.queue, receipt.id
    claim = (queue, message_id, receipt.token, tx.now)
    if queue not in tx.laned and tx.sql.execute(SQL["settle_plain"], claim).rowcount == 1:
        tx.tell(queue_topic(queue), "settled", {"ids": [message_id], "to": "done"}, -ONE_LEASED)
        return Held([True])
    gone = tx.sql.execute(SQL["settle_one"], claim).fetchall()
    if not gone:
        return None
    if gone[0][2]:
        tx.sql.execute(SQL["drop_values"], (as_json([gone[0][0]]),))
    settled = settled_as(*gone[0][1:])
    tx.tell(queue_topic(queue), "settled", told_settled([message_id], [settled]), -ONE_LEASED)
    follow_settled(tx, queue, [settled])
    return Held([True])
