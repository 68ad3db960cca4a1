"""One atomic step on a SQLite file."""

from collections.abc import Sequence
from sqlite3 import Cursor as SqlCursor
from typing import Any

from holdfast.clock import Clock
from holdfast.commands import Command, Held, Put, Puts, Settle, run
from holdfast.commands.endings import promote_keys
from holdfast.commands.topics import queue_topic, watch_topic
from holdfast.commands.transaction import ALL, Draft
from holdfast.records import Kind, Receipt, Settings, moment_in
from holdfast.stores.sqlite.dicts import Entries
from holdfast.stores.sqlite.log import Log
from holdfast.stores.sqlite.queues import Messages, as_json, read_settings
from holdfast.stores.sqlite.rows import is_large
from holdfast.stores.sqlite.statements import SQL


class SqliteTransaction(Messages, Entries, Log):
    """What commands ask for, as SQL; one for each batch of commands."""

    def __init__(self, sql: SqlCursor, clock: Clock) -> None:
        super().__init__(sql, clock.now_us())
        self.clock = clock
        self.reserved: dict[str, int] = {}
        self.hints: dict[str, int] = {}
        self.appended = 0

    @property
    def wall_offset(self) -> int:
        return self.clock.wall_offset_us()

    def execute(self, command: Command[Any]) -> Any:
        """Answer the command; the statements it takes are part of the open transaction."""
        native = self._native(command) if not command.id else None
        if native is not None:
            return native
        self.reserved.clear()
        return run(self, command)

    def _native(self, command: Command[Any]) -> Any:
        """The commonest commands in as few statements as there can be; None, and nothing done, where it takes the rules to decide."""
        if type(command) is Put and len(command.items) == 1:
            return self._put_one(command)
        if type(command) is Settle and command.to == "done" and len(command.receipts) == 1:
            return self._settle_one(command.receipts[0])
        return None

    def _put_one(self, command: Put) -> Puts | None:
        item, queue = command.items[0], command.queue
        if item.key is not None or is_large(item.value):
            return None
        position = self.now + moment_in(item.delay_s) if item.delay_s else self.now
        if item.at is not None:
            position = max(position, item.at - self.wall_offset)
        start_by = None if item.start_within_s is None else position + moment_in(item.start_within_s)
        row = (queue, item.id, item.priority, position, item.max_attempts, item.dead_letter, start_by, self.now, item.metadata, item.value)
        if self.sql.execute(SQL["put_one"], row).rowcount != 1:
            return None
        topic = queue_topic(queue)
        self.append([Draft(topic, "put", {"ids": [item.id]})])
        self.wake(topic, 1)
        return Puts([item.id], [True])

    def _settle_one(self, receipt: Receipt) -> Held | None:
        queue = receipt.queue
        rows = self.sql.execute(SQL["settle_one"], (queue, receipt.id, receipt.token, self.now)).fetchall()
        if not rows:
            return None
        number, key, is_apart = rows[0]
        if is_apart:
            self.sql.execute(SQL["drop_values"], (as_json([number]),))
        facts: dict[str, object] = (
            {"ids": [receipt.id], "to": "done"} if key is None else {"ids": [receipt.id], "keys": [key], "to": "done"}
        )
        self.append([Draft(queue_topic(queue), "settled", facts)])
        if key is not None:
            promote_keys(self, queue, [key])
        return Held([True])

    def append(self, drafts: Sequence[Draft]) -> int:
        self.appended += len(drafts)
        for draft in drafts:
            self.hints[watch_topic(draft.topic)] = ALL
        return super().append(drafts)

    def save_settings(self, settings: Settings) -> None:
        row = (settings.kind, settings.name, settings.paused, settings.maxsize, settings.size, settings.created_at)
        self.sql.execute(SQL["save_settings"], row)

    def drop_settings(self, kind: Kind, name: str) -> None:
        self.sql.execute(SQL["drop_settings"], (kind, name))

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]:
        asked = {"kind": kind, "prefix": prefix, "after": after or "", "limit": limit}
        return [read_settings(row) for row in self.sql.execute(SQL["names"], asked)]

    def wake(self, topic: str, count: int) -> None:
        self.hints[topic] = self.hints.get(topic, 0) + count
