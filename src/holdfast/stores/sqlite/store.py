"""The SQLite store: one file that threads, tasks and processes share."""

import os
import sqlite3
import threading
from typing import TypeVar
from urllib.parse import quote

from holdfast.clock import HOST, AnchoredClock, Clock, Host
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.commands.command import by_halves
from holdfast.stores import AsyncExecutor, Executor, Guarantees
from holdfast.stores.files import Durability
from holdfast.stores.files.beside import create_database
from holdfast.stores.files.store import SharedFileStore
from holdfast.stores.group_commit import Job
from holdfast.stores.sqlite import checkpoints, forks
from holdfast.stores.sqlite.caller_transaction import CallersTransaction, InPlace, check_same_file, commits_each
from holdfast.stores.sqlite.file import (
    UNREADABLE,
    check_folder,
    check_library,
    migrate,
    note_file,
    open_connection,
    read_anchor,
    refuse_if_missing,
    translate,
)
from holdfast.stores.sqlite.readers import Readers
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.stores.sqlite.writer import Writer

R = TypeVar("R")

_left_behind: list[object] = []
"""Connections that a forked child inherited in the middle of their work: closing them would undo it, and so would forgetting them."""


class SqliteStore(SharedFileStore):
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
        create: bool = True,
    ) -> None:
        check_library()
        super().__init__(path, durability, limits, clock, host)
        if not create:
            refuse_if_missing(self.path)
        self.url: str = f"sqlite:///{quote(self.path)}?durability={durability}"
        self.guarantees: Guarantees = Guarantees(durability, "processes", "the host's, since its boot", f"SQLite {sqlite3.sqlite_version}")
        # Held while the store is opened anew in a child.
        self._beginning = threading.Lock()
        # Guards _writer; a fork waits for it, and for those of the readers.
        self.writing: threading.Lock = threading.Lock()
        self.commits: int = 0
        self._is_logged: bool = False
        self._open_file()
        forks.open_stores.add(self)

    def _open_file(self) -> None:
        check_folder(self.path)
        create_database(self.path)
        self._open(self.path)
        self._is_logged = checkpoints.has_log(self.path)
        if self._is_logged:
            checkpoints.watch(self)

    def _connect(self) -> None:
        """Open, create or migrate the file."""
        with forks.opening:
            self._connect_both()

    def _connect_both(self) -> None:
        connections: list[sqlite3.Connection] = []
        try:
            connections.append(open_connection(self.path, self.durability))
            sql = connections[0].cursor()
            sql.execute("begin immediate")
            migrate(sql, self.path)
            note_file(sql, self.path)
            anchor, is_new_boot = read_anchor(sql, self.path, self._host)
            if is_new_boot:
                self._refuse_two_kernels()
            sql.execute("commit")
            readers = Readers(self._open_reader)
            readers.all[0].connection = open_connection(self.path, self.durability)
        except BaseException as error:
            for connection in connections:
                connection.close()
            if isinstance(error, UNREADABLE):
                raise translate(error, self.path) from error
            raise
        self.clock: Clock = self._given_clock or AnchoredClock(anchor, self._host)
        self._writer = Writer(connections[0], self.path, self.durability, self.clock)
        self._readers = readers

    def _open_reader(self) -> sqlite3.Connection:
        with forks.opening:
            return open_connection(self.path, self.durability)

    @property
    def locks(self) -> "tuple[threading.Lock, ...]":
        """Held while its connections are in use."""
        return (self.writing, *(reader.lock for reader in self._readers.all))

    def within(self, connection: sqlite3.Connection) -> Executor:
        """What executes in the transaction of a connection to the same file; on one that commits every statement, the store itself."""
        if self._is_inherited:
            self._begin_in_child()
        self._refuse_if_closed()
        check_same_file(connection, self.path)
        if commits_each(connection):
            return self
        return CallersTransaction(connection, self.path, self.limits, lambda sql: SqliteTransaction(sql, self.clock, self._writer.opener))

    def within_async(self, connection: sqlite3.Connection) -> AsyncExecutor:
        executor = self.within(connection)
        return self.for_tasks() if executor is self else InPlace(executor)

    def close(self) -> None:
        forks.open_stores.discard(self)
        super().close()

    def _release(self) -> None:
        """Close all connections, with everything in the file; the last one to close removes the log, which is writing."""
        checkpoints.forget(self)
        self._readers.close()
        with self.writing:
            checkpoints.move_log(self._writer.connection)
            self._writer.close()

    def _read(self, command: Command[R]) -> R:
        """Answer from what is committed, without a turn."""
        reader = self._readers.take()
        try:
            self._refuse_if_closed()
            sql = self._readers.cursor(reader)
            sql.execute("begin")
            try:
                tx = SqliteTransaction(sql, self.clock, None)
                answer: R = tx.in_time(by_halves, command)
            except BaseException:
                # The error keeps what was being read, and with it this moment of the file, on the connection.
                self._readers.drop(reader)
                raise
            else:
                sql.execute("commit")
                return answer
        except UNREADABLE as error:
            raise translate(error, self.path) from error
        finally:
            reader.lock.release()

    def _transact(self, jobs: list[Job]) -> dict[str, int]:
        with self.writing:
            hints = self._writer.transact(jobs)
        self.commits += 1
        if not self._is_logged:
            self._is_logged = True
            checkpoints.watch(self)
        return hints

    def checkpoint(self) -> None:
        self._is_logged = False
        if not (self._is_closed or self._is_inherited):
            checkpoints.move_log_of(self.path)

    def leave_to_parent(self, *, is_idle: bool) -> None:
        """In a forked child: put away what is the parent's. Most children never use the store, so nothing is opened yet."""
        self._beginning = threading.Lock()
        if self._is_inherited:
            return
        if is_idle:
            for connection in self._readers.connections:
                connection.close()
            self._writer.close()
        else:
            _left_behind.extend((self._writer.connection, *self._readers.connections))
            self._is_closed = True
            self.writing, self._readers = threading.Lock(), Readers(self._open_reader)
        self.waiters.reset()
        self._is_inherited = True

    def _begin_in_child(self) -> None:
        with self._beginning:
            if self._is_inherited:
                self._refuse_if_closed()
                self._open_file()
                self._is_inherited = False
