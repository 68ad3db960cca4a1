"""Commands inside a transaction of the caller's own `sqlite3` connection; they commit or roll back with it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.commands.together import only_reads
from holdfast.stores import Executor
from holdfast.stores.driver_connections import name_of
from holdfast.stores.sqlite.file import UNREADABLE, translate
from holdfast.stores.sqlite.transaction import SqliteTransaction

R = TypeVar("R")

LEGACY = -1
"""What `autocommit` says of a connection that goes by its `isolation_level`; before Python 3.12 all do."""


class CallersTransaction:
    """Executes commands in the open transaction of a connection, or in one that it begins, and never commits it.

    A transaction is begun where Python would begin one for a statement of the caller's own.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: str, limits: Limits, begin: Callable[[sqlite3.Cursor], SqliteTransaction]
    ) -> None:
        self._connection = connection
        self._path = path
        self._limits = limits
        self._begin = begin

    def execute(self, command: Command[R]) -> R:
        command.measure(self._limits)
        sql = cursor_of(self._connection)
        try:
            if self._connection.in_transaction:
                return run_within(sql, self._begin, command)
            return self._run_first(sql, command)
        except UNREADABLE as error:
            raise translate(error, self._path) from error

    def _run_first(self, sql: sqlite3.Cursor, command: Command[R]) -> R:
        sql.execute("begin immediate")
        try:
            return run(self._begin(sql), command)
        except BaseException:
            roll_back(sql, "rollback")
            raise


class InPlace:
    """For tasks: a connection of `sqlite3` blocks, and its owner uses it on the event loop already."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def execute(self, command: Command[R]) -> R:
        return self._executor.execute(command)


def run_within(sql: sqlite3.Cursor, begin: Callable[[sqlite3.Cursor], SqliteTransaction], command: Command[R]) -> R:
    """Execute the command in the transaction that is open; if it fails, what the caller did before is as it was."""
    sql.execute("savepoint holdfast")
    try:
        if not only_reads(command):
            lock_for_writing(sql)
        answer = run(begin(sql), command)
    except BaseException:
        roll_back(sql, "rollback to holdfast", "release holdfast")
        raise
    sql.execute("release holdfast")
    return answer


def lock_for_writing(sql: sqlite3.Cursor) -> None:
    """Wait for the lock of the writer now: a transaction that has read something first cannot wait for it any more, and is refused."""
    try:
        sql.execute("delete from holdfast_meta where false")
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise


def run(tx: SqliteTransaction, command: Command[R]) -> R:
    """Execute the command. Renewals are no events, yet after a reboot time must not go back behind them."""
    answer: R = tx.execute(command)
    if tx.has_renewed:
        tx.note_time()
    if tx.shifts:
        tx.save_counts()
    return answer


def roll_back(sql: sqlite3.Cursor, *statements: str) -> None:
    """Undo, unless SQLite has rolled the whole transaction back itself, as on a full disk."""
    for statement in statements if sql.connection.in_transaction else ():
        sql.execute(statement)


def cursor_of(connection: sqlite3.Connection) -> sqlite3.Cursor:
    """A cursor that gives plain rows, whatever the caller's others give."""
    sql = connection.cursor()
    sql.row_factory = None
    return sql


def commits_each(connection: sqlite3.Connection) -> bool:
    """Whether a statement of the caller's would be committed by itself now."""
    if connection.in_transaction:
        return False
    autocommit = getattr(connection, "autocommit", LEGACY)
    return connection.isolation_level is None if autocommit == LEGACY else bool(autocommit)


def path_of(connection: sqlite3.Connection) -> str:
    """The connection's file, empty where it has none; refuses a connection that no store can use."""
    if not isinstance(connection, sqlite3.Connection):
        raise TypeError(f"connection must be a sqlite3 connection, not {name_of(connection)}")
    if connection.text_factory is not str:
        raise ValueError("the connection has its own text_factory, but Holdfast needs text: use another connection")
    return str(cursor_of(connection).execute("pragma database_list").fetchone()[2])


def check_same_file(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a connection to another file than the store's."""
    found = path_of(connection)
    if not found or not Path(found).samefile(path):
        raise ValueError(f"the connection is to {found or 'a database in memory'}, but the store is {path}: connect to that file")
