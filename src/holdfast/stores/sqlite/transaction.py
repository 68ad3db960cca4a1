"""One atomic step on a SQLite file."""

from collections.abc import Callable, Sequence
from sqlite3 import Cursor as SqlCursor
from typing import Any

from holdfast.clock import Clock
from holdfast.commands import Command, run
from holdfast.commands.allowance import Allowance
from holdfast.commands.command import by_halves
from holdfast.commands.request import NOBODY, current
from holdfast.policy_records import Kind, Settings
from holdfast.records import Lease, Message
from holdfast.share_records import Share
from holdfast.stores.sqlite.copying import Copies
from holdfast.stores.sqlite.counts import fold
from holdfast.stores.sqlite.dicts import Entries
from holdfast.stores.sqlite.fast import commands as fast
from holdfast.stores.sqlite.file import LATEST
from holdfast.stores.sqlite.lanes import read_settings, write_settings
from holdfast.stores.sqlite.queues import Messages
from holdfast.stores.sqlite.statements import SQL

LOOK_EVERY = 10_000
"""After so many instructions of SQLite's, a fraction of a millisecond, it is asked whether the command has taken too long."""


class SqliteTransaction(Messages, Entries, Copies):
    """What commands ask for, as SQL; one for each batch of commands."""

    reserved: dict[str, int]
    has_renewed: bool = False

    def __init__(self, sql: SqlCursor, clock: Clock, opener: str | None, laned: set[str] | None = None) -> None:
        self.sql = sql
        self.laned: set[str] = set() if laned is None else laned
        self.clock = clock
        self.now: int = clock.now_us()
        self.allowance: Allowance = Allowance()
        self.hints: dict[str, int] = {}
        self.shifts: dict[str, list[int]] = {}
        self.appended: int = 0
        self.opener = opener

    @property
    def wall_offset(self) -> int:
        return self.clock.wall_offset_us()

    def execute(self, command: Command[Any]) -> Any:
        """Answer the command; the statements it takes are part of the open transaction."""
        return self.in_time(_run, command)

    def in_time(self, act: "Callable[[SqliteTransaction, Command[Any]], Any]", command: Command[Any]) -> Any:
        """Act on the command, and end its statements when its request is over."""
        request = current.get()
        if request is NOBODY:
            return act(self, command)
        # Only for a server, in whose threads no signal arrives: raised in the handler, a Ctrl-C would be lost.
        self.sql.connection.set_progress_handler(request.is_over, LOOK_EVERY)
        try:
            return act(self, command)
        finally:
            self.sql.connection.set_progress_handler(None, 0)

    def extend(self, messages: Sequence[Message], until: int) -> None:
        self.has_renewed = True
        super().extend(messages, until)

    def save_leases(self, leases: Sequence[Lease]) -> None:
        self.has_renewed = True
        super().save_leases(leases)

    def save_shares(self, shares: Sequence[Share]) -> None:
        self.has_renewed = True
        super().save_shares(shares)

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        fold(self.sql)  # What events say must not go with them.
        return super().prune(keep, older_than, never_after, limit)

    def note_time(self) -> None:
        """Remember this moment, as an event would."""
        self.sql.execute(SQL["save_meta"], (LATEST, str(self.now)))

    def save_settings(self, settings: Settings) -> None:
        self.sql.execute(SQL["save_settings"], write_settings(settings))

    def clear(self, kind: Kind, name: str, *, drop: bool) -> int:
        if drop:
            self.sql.execute(SQL["drop_settings"], (kind, name))
        return self._clear_queue(name) if kind == "queue" else self._clear_dict(name)

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]:
        asked = {"kind": kind, "prefix": prefix, "after": after or "", "limit": limit}
        return [read_settings(row) for row in self.sql.execute(SQL["names"], asked)]

    def wake(self, topic: str, count: int) -> None:
        self.hints[topic] = self.hints.get(topic, 0) + count


def _run(tx: SqliteTransaction, command: Command[Any]) -> Any:
    return run(tx, command, _carry_out)


def _carry_out(tx: SqliteTransaction, command: Command[Any]) -> Any:
    answer = fast.answer(tx, command)
    if answer is not None:
        return answer
    tx.reserved = {}
    return by_halves(tx, command)
