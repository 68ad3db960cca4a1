"""The commonest commands without their halves: to put, claim and acknowledge what has no conditions takes no rules.

Each answers None, and has done nothing, where the rules must decide.
"""

from holdfast.commands import Claim, Claimed, Held, Item, Put, Puts, Settle
from holdfast.commands.endings import told
from holdfast.commands.plain import uses_only
from holdfast.commands.topics import queue_topic
from holdfast.commands.transaction import Draft
from holdfast.records import end_of, moment_in
from holdfast.stores.lmdb.layout import NUMBER, scope, text_key
from holdfast.stores.lmdb.messages import Messages
from holdfast.stores.lmdb.rows import LARGE_BYTES, Row

_is_put = uses_only(Put, "id", "queue", "items")
_is_item = uses_only(
    Item, "id", "value", "if_ready", "if_leased", "delay_s", "at", "priority", "max_attempts", "dead_letter", "start_within_s", "metadata"
)
_is_claim = uses_only(Claim, "id", "queue", "holder", "lease_s", "limit", "expired_to", "max_attempts", "dead_letter")
_is_done = uses_only(Settle, "id", "receipts", "return_to", "delay_s", "error", "counts", "max_attempts", "dead_letter")


class Native(Messages):
    """Puts without keys into a queue without bounds; claims while nothing is overdue; acknowledgements of what has no key."""

    def _put(self, command: Put) -> Puts | None:
        if not _is_put(command) or not all(map(_is_item, command.items)):
            return None
        settings = self.settings("queue", command.queue)
        if settings is None or settings.maxsize is not None:
            return None
        ids = [item.id for item in command.items]
        if not ids or len(set(ids)) < len(ids) or self.taken_ids(command.queue, ids):
            return None
        topic = queue_topic(command.queue)
        first = self.first_n(self.append([Draft(topic, "put", told(ids, (), {}))]))
        rows = [self._new_row(command.queue, item, n) for n, item in enumerate(command.items, first)]
        self._save(rows)
        self._stand(rows)
        self.wake(topic, len(rows))
        return Puts(ids, [True] * len(ids))

    def _new_row(self, queue: str, item: Item, n: int) -> Row:
        position = self.now + moment_in(item.delay_s) if item.delay_s else self.now
        if item.at is not None:
            position = max(position, item.at - self.wall_offset)
        start_by = None if item.start_within_s is None else position + moment_in(item.start_within_s)
        metadata = None if item.metadata is None else bytes(item.metadata)
        value: bytes | None = bytes(item.value)
        if value is not None and len(value) > LARGE_BYTES:
            self.txn.put(NUMBER.pack(n), value, db=self.tables.values)
            value = None
        # In the order of the fields: keywords cost as much as the row.
        return Row(
            queue,
            item.id,
            n,
            None,
            item.priority,
            position,
            "ready",
            0,
            0,
            item.max_attempts,
            item.dead_letter,
            start_by,
            self.now,
            "",
            0,
            0,
            0,
            "place",
            None,
            0,
            metadata,
            value,
        )

    def _claim(self, command: Claim) -> Claimed | None:
        if not _is_claim(command):
            return None
        settings = self.settings("queue", command.queue)
        if settings is None or settings.paused or settings.maxsize is not None:
            return None
        start = scope(command.queue)
        if next(self._past(self.tables.leased, start), None) or next(self._past(self.tables.starts, start), None):
            return None
        heads = self._heads(start, command.limit)
        if not heads:
            return None
        facts = told([message.id for message in heads], [message.key for message in heads], {"holder": command.holder})
        token = self.append([Draft(queue_topic(command.queue), "claimed", facts)])
        until = end_of(self.now, command.lease_s)
        self.lease(heads, command.holder, token, until, command.expired_to)
        return Claimed([message.leased(command.holder, token, self.now, until, command.expired_to) for message in heads])

    def _settle(self, command: Settle) -> Held | None:
        receipts = command.receipts
        if not _is_done(command) or len({receipt.id for receipt in receipts}) < len(receipts):
            return None
        queue, held, rows = receipts[0].queue if receipts else "", list[bool](), list[Row]()
        start = scope(queue)
        for receipt in receipts:
            row = self._row_at(text_key(start, receipt.id))
            is_held = row is not None and row.state == "leased" and row.token == receipt.token and row.until > self.now
            if receipt.queue != queue or (row is not None and row.key is not None):
                return None
            if is_held and row is not None:
                rows.append(row)
            held.append(is_held)
        if rows:
            self.append([Draft(queue_topic(queue), "settled", told([row.id for row in rows], (), {"to": "done"}))])
            self._remove_rows(rows)
        return Held(held)
