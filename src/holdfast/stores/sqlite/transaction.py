"""One atomic step on a SQLite file."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from sqlite3 import Cursor as SqlCursor
from typing import Any, NamedTuple

from msgspec.structs import astuple

from holdfast.clock import Clock
from holdfast.commands import Command, run
from holdfast.commands.allowance import Allowance
from holdfast.commands.command import by_halves
from holdfast.commands.hints import Hints
from holdfast.commands.request import NOBODY, current
from holdfast.commands.transaction import Outdated, Record
from holdfast.records import Entry, Lease, Message, Receipt
from holdfast.records.policies import Kind, Lane, Settings
from holdfast.records.shares import Share, Shared
from holdfast.stores.sqlite.copying import Copies
from holdfast.stores.sqlite.counts import fold
from holdfast.stores.sqlite.dicts import Entries, read_entry, write_entry, write_lease, write_shared
from holdfast.stores.sqlite.fast import commands as fast
from holdfast.stores.sqlite.file import LATEST
from holdfast.stores.sqlite.lanes import read_settings, write_lane, write_settings
from holdfast.stores.sqlite.queues import Messages
from holdfast.stores.sqlite.statements import SQL

LOOK_EVERY = 10_000
"""After so many instructions of SQLite's, a fraction of a millisecond, it is asked whether the command has taken too long."""


class Form(NamedTuple):
    """How a kind of record is saved."""

    save: str
    row: Callable[[Any], tuple[object, ...]]
    delete: str
    key: Callable[[Any], tuple[object, ...]]
    is_gone: Callable[[Any], bool] = attrgetter("is_gone")
    renews: bool = False
    """Whether it is saved without an event, which would note the moment."""


def _lease_key(lease: Lease) -> tuple[object, ...]:
    return (lease.dict or "", lease.key)


FORMS: dict[type[Record], Form] = {
    Settings: Form("save_settings", write_settings, "drop_settings", attrgetter("kind", "name"), lambda _: False),
    Lane: Form("save_lane", write_lane, "delete_lane", attrgetter("queue", "name")),
    Entry: Form("save_entry", write_entry, "delete_entry", attrgetter("dict", "key")),
    Lease: Form("save_lease", write_lease, "delete_lease", _lease_key, renews=True),
    Shared: Form("save_shared", write_shared, "delete_lease", _lease_key, renews=True),
    Share: Form("save_share", astuple, "delete_share", attrgetter("key", "lease_id"), renews=True),
}


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
        self.hints: Hints = Hints()
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

    def renew_claim(self, receipt: Receipt, until: int, *, progress: bool) -> bool:
        self.has_renewed = True
        return super().renew_claim(receipt, until, progress=progress)

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        fold(self.sql)  # What events say must not go with them.
        return super().prune(keep, older_than, never_after, limit)

    def note_time(self) -> None:
        """Remember this moment, as an event would."""
        self.sql.execute(SQL["save_meta"], (LATEST, str(self.now)))

    def save(self, records: Sequence[Record]) -> None:
        for kind, same in groupby(records, type):
            if kind is Message:
                self._save_messages(list(same))  # type: ignore[arg-type] # of that kind
            else:
                self._save_rows(FORMS[kind], same)

    def _save_rows(self, form: Form, records: Iterable[Record]) -> None:
        kept, gone = list[tuple[object, ...]](), list[tuple[object, ...]]()
        for record in records:
            if form.is_gone(record):
                gone.append(form.key(record))
            else:
                kept.append(form.row(record))
        for statement, rows in ((form.save, kept), (form.delete, gone)):
            if len(rows) == 1:
                self.sql.execute(SQL[statement], rows[0])
            elif rows:
                self.sql.executemany(SQL[statement], rows)
        self.has_renewed |= form.renews

    def clear(self, kind: Kind, name: str, *, drop: bool) -> int:
        if drop:
            self.sql.execute(SQL["drop_settings"], (kind, name))
        return self._clear_queue(name) if kind == "queue" else self._clear_dict(name)

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]:
        asked = {"kind": kind, "prefix": prefix, "after": after or "", "limit": limit}
        return [read_settings(row) for row in self.sql.execute(SQL["names"], asked)]

    def outdated(self, limit: int, *, done: bool) -> Outdated:
        entries = [read_entry(row) for row in self.sql.execute(SQL["stale_entries"], (self.now, limit))]
        return Outdated(entries, [row[0] for row in self.sql.execute(SQL["histories"], (limit if done else 0,))])


def _run(tx: SqliteTransaction, command: Command[Any]) -> Any:
    return run(tx, command, _carry_out)


def _carry_out(tx: SqliteTransaction, command: Command[Any]) -> Any:
    answer = fast.answer(tx, command)
    if answer is not None:
        return answer
    tx.reserved = {}
    return by_halves(tx, command)
