"""A store on the caller's own `sqlite3` connection; its work commits or rolls back with the caller's."""

import os
import sqlite3
from secrets import token_hex
from typing import TypeVar
from urllib.parse import quote

from holdfast.clock import HOST, AnchoredClock
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.stores import Executor, Guarantees
from holdfast.stores.files.store import TURN_S
from holdfast.stores.files.turns import Turns
from holdfast.stores.files.wakeups import Wakeups
from holdfast.stores.on_connection import OnConnection
from holdfast.stores.sqlite.caller_transaction import CallersTransaction, commits_each, cursor_of, path_of, roll_back, run, run_within
from holdfast.stores.sqlite.file import UNREADABLE, check_library, migrate, read_anchor, translate
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")

THIS_PROGRAM = token_hex(8)
"""Opens a file once, as often as it lends us connections: it is not known when the caller commits what we do there."""


class BorrowedStore(OnConnection):
    """Commands inside the open transaction of a connection, which they never commit; on an idle connection each commits for itself.

    Waiters elsewhere hear of an idle connection's commands at once, and of a transaction's at their next poll after its commit.
    """

    only_threads = "a sqlite3 connection belongs to its thread: use it there, or connect to the file"

    def __init__(self, connection: sqlite3.Connection, *, limits: Limits = Limits()) -> None:
        check_library()
        self.connection = connection
        self.limits = limits
        self.path: str = path_of(connection)
        self.url: str = f"sqlite:///{quote(self.path)}"
        self.guarantees: Guarantees = Guarantees("process", "processes", "the host's, since its boot", f"SQLite {sqlite3.sqlite_version}")
        self.waiters: Waiters = Waiters()
        self._clock: AnchoredClock | None = None
        # A database in memory has no other writers.
        self._turns = Turns.shared(self.path) if self.path else None
        self._wakeups = Wakeups(self.path, self.waiters.hint) if self.path else None

    def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        try:
            if self.connection.in_transaction:
                return run_within(cursor_of(self.connection), self._transaction, command)
            return self._execute_alone(command)
        except UNREADABLE as error:
            raise translate(error, self.path) from error

    def _execute_alone(self, command: Command[R]) -> R:
        if self._turns is None:
            answer, _ = self._commit(command)
            return answer
        with self._turns.mutex:
            try:
                self._turns.take(TURN_S)
                answer, hints = self._commit(command)
            finally:
                self._turns.done()
        if self._wakeups is not None and hints:
            self._wakeups.post(list(hints.items()))
        return answer

    def _commit(self, command: Command[R]) -> tuple[R, dict[str, int]]:
        sql = cursor_of(self.connection)
        sql.execute("begin immediate")
        try:
            tx = self._transaction(sql)
            answer = run(tx, command)
            sql.execute("commit")
            self._clock = self._clock or AnchoredClock(self._anchor)
        except BaseException:
            roll_back(sql, "rollback")
            raise
        return answer, tx.hints

    def _transaction(self, sql: sqlite3.Cursor) -> SqliteTransaction:
        clock = self._clock
        if clock is None:
            # Tables and anchor may vanish with the caller's transaction, so they are remembered only once we committed them.
            migrate(sql, self.path)
            self._anchor, _ = read_anchor(sql, self.path, HOST)
            clock = AnchoredClock(self._anchor)
        return SqliteTransaction(sql, clock, f"{os.getpid()}-{THIS_PROGRAM}")

    def mark(self, topic: str) -> Mark:
        if self._wakeups is not None:
            self._wakeups.listen()
        return self.waiters.mark(topic)

    def hint_committed(self, topic: str) -> None:
        self.waiters.hint(topic)
        if self._wakeups is not None:
            self._wakeups.post([(topic, 1)])

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self.waiters.wait(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return 0 if self._clock is None else self._clock.wall_offset_us()

    def within(self, connection: sqlite3.Connection) -> Executor:
        """See `SqliteStore.within`; this store has only the one connection."""
        if connection is not self.connection:
            raise ValueError("the store runs on your connection, and connection= is a different one: leave it out, or connect to the file")
        return self if commits_each(connection) else CallersTransaction(connection, self.path, self.limits, self._transaction)

    def close(self) -> None:
        """End waits; the connection stays the caller's."""
        self.waiters.close()
        if self._wakeups is not None:
            self._wakeups.close()
        if self._turns is not None:
            self._turns.close()
