"""The embedded default: one SQLite file that threads, tasks and processes share."""

import os
import sqlite3
import threading
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from holdfast.clock import HOST, AnchoredClock, Clock, Host
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed, StoreUnavailable
from holdfast.stores import AsyncStore, Executor, Guarantees
from holdfast.stores.committing import Committer, Job, fail_all, read_each
from holdfast.stores.sqlite import forks
from holdfast.stores.sqlite.file import (
    Durability,
    check_folder,
    check_library,
    migrate,
    open_connection,
    read_anchor,
    translate,
)
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.stores.sqlite.turns import Turns
from holdfast.stores.sqlite.wakeups import Wakeups
from holdfast.stores.sqlite.within import CallersTransaction, check_same_file, commits_each
from holdfast.stores.sqlite.writer import Writer
from holdfast.stores.threaded import ThreadedStore
from holdfast.stores.waiting import Mark, Waiters, waiters_for

R = TypeVar("R")

TURN_S = 30.0
"""How long other processes may keep a turn before we give up."""

_left_behind: list[object] = []
"""Connections that a forked child inherited in the middle of their work: closing them would undo it, and so would forgetting them."""


class SqliteStore:
    """A store in one SQLite file.

    `durability="power"` survives a loss of power (synchronous=FULL), `"process"` the death of every process (synchronous=NORMAL).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        limits: Limits = Limits(),
        clock: Clock | None = None,
        host: Host = HOST,
    ) -> None:
        if durability not in ("power", "process"):
            message = f"durability is {durability!r}: choose 'power' or 'process'"
            raise ValueError(message)
        check_library()
        self.path: str = str(Path(path).absolute())
        self.url: str = f"sqlite:///{quote(self.path)}?durability={durability}"
        self.limits = limits
        self.durability = durability
        self.guarantees: Guarantees = Guarantees(durability, "processes", "the host's, since its boot", f"SQLite {sqlite3.sqlite_version}")
        self._host = host
        self._given_clock = clock
        self._is_closed = False
        self._is_inherited = False
        # Held while the store is opened anew in a child.
        self._beginning = threading.Lock()
        # Guard _writer and _reader; a fork waits for both.
        self.writing: threading.Lock = threading.Lock()
        self.reading: threading.Lock = threading.Lock()
        self._open()
        forks.open_stores.add(self)

    def _open(self) -> None:
        check_folder(self.path)
        self._committer = Committer(self._run_batch)
        self._turns = Turns.shared(self.path)
        try:
            with self._turns.mutex:
                self._turns.take(TURN_S)
                try:
                    with forks.opening:
                        self._connect()
                finally:
                    self._turns.done()
        except BaseException:
            self._turns.close()
            raise
        self.waiters: Waiters = waiters_for(self.clock)
        self._wakeups = Wakeups(self.path, self.waiters.hint)

    def _connect(self) -> None:
        """Open, create or migrate the file, during a turn: two processes may open a new one at once."""
        connections: list[sqlite3.Connection] = []
        try:
            connections.append(open_connection(self.path, self.durability))
            sql = connections[0].cursor()
            sql.execute("begin immediate")
            migrate(sql, self.path)
            anchor, is_new_boot = read_anchor(sql, self.path, self._host)
            if is_new_boot:
                self._refuse_two_kernels()
            sql.execute("commit")
            connections.append(open_connection(self.path, self.durability))
        except BaseException as error:
            for connection in connections:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise
        self.clock: Clock = self._given_clock or AnchoredClock(anchor, self._host)
        self._writer = Writer(connections[0], self.path, self.durability, self.clock)
        self._reader = connections[1]

    def _refuse_two_kernels(self) -> None:
        if not self._turns.alone():
            message = f"{self.path} is open on another machine, or in another kernel: use it from one at a time, on a local disk"
            raise StoreUnavailable(message)

    def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        if self._is_inherited:
            self._begin_in_child()
        if command.reads_only:
            return self._read(command)
        return self._committer.execute(command)

    def run(self, jobs: list[Job]) -> None:
        """Have the jobs done, for callers who gather several; their commands were measured before."""
        if self._is_inherited:
            self._begin_in_child()
        if all(job.command.reads_only for job in jobs):
            read_each(jobs, self._read)
        else:
            self._committer.run(jobs)

    def mark(self, topic: str) -> Mark:
        self.listen()
        return self.waiters.mark(topic)

    def listen(self) -> None:
        """Hear the hints of other processes from now on."""
        if self._is_inherited:
            self._begin_in_child()
        self._wakeups.listen()

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self.waiters.wait(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self.clock.wall_offset_us()

    def within(self, connection: sqlite3.Connection) -> Executor:
        """What executes in the transaction of a connection to the same file; on one that commits every statement, the store itself."""
        if self._is_inherited:
            self._begin_in_child()
        self._refuse_if_closed()
        check_same_file(connection, self.path)
        if commits_each(connection):
            return self
        return CallersTransaction(connection, self.path, self.limits, lambda sql: SqliteTransaction(sql, self.clock))

    def for_tasks(self) -> AsyncStore:
        return ThreadedStore(self)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        forks.open_stores.discard(self)
        if self._is_inherited:
            return
        self.waiters.close()
        self._wakeups.close()
        with self.reading:
            self._reader.close()
        # The last connection to close tidies the log up, which is writing: it takes a turn as any writer does.
        with self._turns.mutex:
            self._turns.take(TURN_S)
            try:
                with self.writing:
                    self._writer.close()
            finally:
                self._turns.done()
        self._turns.close()

    def _read(self, command: Command[R]) -> R:
        """Answer from what is committed, without a turn."""
        with self.reading:
            self._refuse_if_closed()
            sql = self._reader.cursor()
            try:
                sql.execute("begin")
                try:
                    tx = SqliteTransaction(sql, self.clock)
                    return command.write(tx, command.check(tx))
                finally:
                    sql.execute("commit")
            except sqlite3.Error as error:
                raise translate(error, self.path) from error

    def _run_batch(self, jobs: list[Job]) -> None:
        """Have the jobs done during a turn, and tell who waits for what they did."""
        turns = self._turns
        with turns.mutex:
            self._refuse_if_closed()
            try:
                turns.take(TURN_S)
                with self.writing:
                    hints = self._writer.transact(jobs)
            except StoreUnavailable as error:
                hints = fail_all(jobs, error)
            finally:
                turns.done()
        if hints:
            self.waiters.hint_each(hints.items())
            self._wakeups.post(list(hints.items()))

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            message = f"{self.path} was closed: open the store again"
            raise Closed(message)

    def leave_to_parent(self, *, is_idle: bool) -> None:
        """In a forked child: put away what is the parent's. Most children never use the store, so nothing is opened yet."""
        self._beginning = threading.Lock()
        if self._is_inherited:
            return
        if is_idle:
            self._reader.close()
            self._writer.close()
        else:
            _left_behind.extend((self._writer.connection, self._reader))
            self._is_closed = True
            self.writing, self.reading = threading.Lock(), threading.Lock()
        self.waiters.reset()
        self._is_inherited = True

    def _begin_in_child(self) -> None:
        with self._beginning:
            if self._is_inherited:
                self._refuse_if_closed()
                self._open()
                self._is_inherited = False
