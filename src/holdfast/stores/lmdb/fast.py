"""The fast path: plain puts, claims and settlements to done, where nothing stored asks for more.

Each returns None, with nothing done, where the full rules must decide.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from holdfast.commands import Claim, Claimed, Command, Held, Item, Put, Puts, Settle
from holdfast.commands.endings import told
from holdfast.commands.topics import queue_topic
from holdfast.commands.transaction import Draft
from holdfast.records import end_of
from holdfast.stores.files.extra import PUT_FIELDS
from holdfast.stores.lmdb.layout import scope, text_key
from holdfast.stores.lmdb.messages import Messages
from holdfast.stores.lmdb.rows import LARGE_BYTES, Row

_options: Callable[[Item], tuple[Any, ...]] = attrgetter(*(name for name in Item.__struct_fields__ if name not in ("id", "value")))


class Fast(Messages):
    """Puts into a queue without bounds; claims while nothing is overdue; settlements of what has no key."""

    def fast(self, command: Command[Any]) -> Puts | Claimed | Held | None:
        """The answer to a command that the fast path knows."""
        if type(command) is Put:
            return self._put(command) if command.plain(*PUT_FIELDS) else None
        if type(command) is Claim:
            return self._claim(command) if command.plain() else None
        return self._settle(command) if type(command) is Settle and command.to == "done" and command.plain() else None

    def _put(self, command: Put) -> Puts | None:
        queue, items = command.queue, command.items
        settings = self.settings("queue", queue)
        ids = [item.id for item in items]
        if settings is None or settings.maxsize is not None or any(self.messages(queue, ids)):
            return None
        if settings.policy is not None and settings.policy.has_lanes:
            return None
        topic = queue_topic(queue)
        first = self.first_n(self.append([Draft(topic, "put", told(ids, (), {}))]))
        self._enter(self._rows_of(queue, items, first))
        self.hints.wake(topic, len(ids))
        return Puts(ids, [True] * len(ids))

    def _rows_of(self, queue: str, items: Sequence[Item], first: int) -> list[Row]:
        """The rows of new messages. Most of one put have the same options, and then a row is made from the first."""
        item = items[0]
        message = item.message(queue, self.now, 0 if item.at is None else self.wall_offset)
        row = self._new_row(message, first)
        if len(items) == 1:
            return [row]
        rows, options, wall_offset = [row], _options(item), self.wall_offset
        for n, item in enumerate(items[1:], first + 1):
            if len(item.value) > LARGE_BYTES or _options(item) != options:
                rows.append(self._new_row(item.message(queue, self.now, wall_offset), n))
            else:
                self._save_extra(message, n)
                rows.append(replace(row, id=item.id, n=n, value=bytes(item.value)))
        return rows

    def _claim(self, command: Claim) -> Claimed | None:
        settings = self.settings("queue", command.queue)
        if settings is None or settings.paused or settings.maxsize is not None or settings.shapes_claims:
            return None
        start = scope(command.queue)
        if next(self._past(self.tables.leased, start), None) or next(self._past(self.tables.starts, start), None):
            return None
        heads = self._heads(start, command.limit)
        if not heads or any(message.group is not None for message in heads):
            return None
        facts = told([message.id for message in heads], [message.key for message in heads], {"holder": command.holder})
        token = self.append([Draft(queue_topic(command.queue), "claimed", facts)])
        until = end_of(self.now, command.lease_s)
        self.lease(heads, command.holder, token, until, command.expired_to)
        return Claimed([message.leased(command.holder, token, self.now, until, command.expired_to) for message in heads])

    def _settle(self, command: Settle) -> Held | None:
        queue, held, rows = command.receipts[0].queue, list[bool](), list[Row]()
        start = scope(queue)
        for receipt in command.receipts:
            row = self._row_at(text_key(start, receipt.id))
            is_held = row is not None and row.state == "leased" and row.token == receipt.token and row.until > self.now
            if row is not None and (row.key is not None or (row.lined is not None and row.lined.tied)):
                return None
            if is_held and row is not None:
                rows.append(row)
            held.append(is_held)
        if command.all_or_none and not all(held):
            return None
        if rows:
            self.append([Draft(queue_topic(queue), "settled", told([row.id for row in rows], (), {"to": "done"}))])
            self._remove_rows(rows)
        return Held(held)
