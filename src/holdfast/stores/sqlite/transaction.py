"""One atomic step on a SQLite file."""

from collections.abc import Sequence
from sqlite3 import Cursor as SqlCursor
from typing import Any

from holdfast.commands import Command, Put, Puts, run
from holdfast.commands.topics import queue_topic, watch_topic
from holdfast.commands.transaction import ALL, Draft
from holdfast.records import Kind, Settings, moment_in
from holdfast.stores.sqlite.dicts import Entries
from holdfast.stores.sqlite.log import Log
from holdfast.stores.sqlite.queues import Messages, read_settings
from holdfast.stores.sqlite.rows import is_large
from holdfast.stores.sqlite.statements import SQL


class SqliteTransaction(Messages, Entries, Log):
    """What commands ask for, as SQL; one for each batch of commands."""

    def __init__(self, sql: SqlCursor, now: int, wall_offset: int) -> None:
        super().__init__(sql, now)
        self.wall_offset = wall_offset
        self.reserved: dict[str, int] = {}
        self.hints: dict[str, int] = {}
        self.appended = 0

    def execute(self, command: Command[Any]) -> Any:
        """Answer the command; the statements it takes are part of the open transaction."""
        if type(command) is Put and not command.id and len(command.items) == 1:
            answer = self._put_one(command)
            if answer is not None:
                return answer
        self.reserved.clear()
        return run(self, command)

    def _put_one(self, command: Put) -> Puts | None:
        """The commonest command in two statements; None, and nothing done, where it takes the rules to decide."""
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
