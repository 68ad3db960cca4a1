"""The embedded default: one SQLite file that threads, tasks and processes share."""

import os
import sqlite3
import threading
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from holdfast.clock import HOST, AnchoredClock, Clock, Host
from holdfast.codec import Limits
from holdfast.commands import Command, Prune
from holdfast.errors import Closed, HoldfastError, OutcomeUnknown, StoreError, StoreFull, StoreUnavailable
from holdfast.stores import AsyncStore, Executor, Guarantees
from holdfast.stores.committing import Committer, Job, read_each
from holdfast.stores.sqlite import forks, native
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
from holdfast.stores.threaded import ThreadedStore
from holdfast.stores.waiting import Mark, Waiters, waiters_for

R = TypeVar("R")

TURN_S = 30.0
"""How long other processes may keep a turn before we give up."""

PRUNE_EVERY = 100
NOTE_EVERY_US = 1_000_000
PRUNE = Prune(limit=2 * PRUNE_EVERY)

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
        self._since_prune = 0
        self._noted_at = 0
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
        self._writer, self._reader = connections
        self.clock: Clock = self._given_clock or AnchoredClock(anchor, self._host)

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
        """Run the jobs in one transaction; if that fails for any reason but a refusal, each in one of its own."""
        turns = self._turns
        with turns.mutex:
            self._refuse_if_closed()
            try:
                turns.take(TURN_S)
                with self.writing:
                    hints = self._transact_with_room(jobs[0]) if len(jobs) == 1 else self._transact_all(jobs)
                    if hints is None:
                        hints = self._transact_each(jobs)
            except StoreUnavailable as error:
                hints = _fail_all(jobs, error)
            finally:
                turns.done()
        if hints:
            self.waiters.hint_each(hints.items())
            self._wakeups.post(list(hints.items()))

    def _transact_with_room(self, job: Job) -> dict[str, int]:
        try:
            return self._transact_one(job)
        except StoreFull:
            if not self._empty_log():
                raise
            return self._transact_one(job)

    def _empty_log(self) -> bool:
        """On a full disk: let the log be written from its beginning again, in the room it has."""
        try:
            _, pages, moved = self._cursor().execute("pragma wal_checkpoint(passive)").fetchone()
        except sqlite3.Error:
            return False
        return bool(pages == moved)

    def _transact_one(self, job: Job) -> dict[str, int]:
        """Commit what the job does; answer the hints it gives. Raises with nothing written, unless the job is done or nobody knows."""
        try:
            sql = self._cursor()
            sql.execute("begin immediate")
            tx = SqliteTransaction(sql, self.clock)
            job.answer = tx.execute(job.command)
            self._look_after(tx)
            self._commit(sql, [job])
        except BaseException as error:
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise
        return tx.hints

    def _transact_each(self, jobs: list[Job]) -> dict[str, int]:
        hints: dict[str, int] = {}
        for job in jobs:
            try:
                hints |= self._transact_with_room(job)
            except Exception as error:  # noqa: BLE001 - whatever it is, the job's caller must have it
                job.fail(error)
        return hints

    def _transact_all(self, jobs: list[Job]) -> dict[str, int] | None:
        """Commit what the jobs do together; None, with nothing done, when one of them fails it."""
        try:
            sql = self._cursor()
            sql.execute("begin immediate")
            tx = SqliteTransaction(sql, self.clock)
            for queue, alike in native.plain_puts(jobs):
                if queue is None or len(alike) == 1 or not native.put_each(tx, queue, alike):
                    for job in alike:
                        _attempt(tx, job)
            self._look_after(tx)
            self._commit(sql, jobs)
        except BaseException as error:
            self._roll_back()
            if not isinstance(error, Exception):
                raise
            failed = translate(error, self.path) if isinstance(error, sqlite3.Error) else error
            # Alone, each would wait as long again; and what is perhaps written must not be written twice.
            return _fail_all(jobs, failed) if isinstance(failed, StoreUnavailable) else None
        return tx.hints

    def _commit(self, sql: sqlite3.Cursor, jobs: list[Job]) -> None:
        """Commit, and only then call the jobs done."""
        try:
            sql.execute("commit")
            _call_done(jobs)
        except sqlite3.Error as error:
            # Its state is not to be trusted; the next transaction opens another. A cursor left open would keep it, and its lock.
            self._roll_back()
            sql.close()
            self._writer.close()
            if (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
                raise
            message = f"the commit to {self.path} failed and may or may not be on disk: look before you repeat it ({error})"
            raise OutcomeUnknown(message) from error
        except BaseException:
            # A Ctrl-C strikes before SQLite begins or after it has ended, never in between.
            if not self._writer.in_transaction:
                _call_done(jobs)
            raise

    def _cursor(self) -> sqlite3.Cursor:
        try:
            return self._writer.cursor()
        except sqlite3.ProgrammingError:
            self._writer = open_connection(self.path, self.durability)
            return self._writer.cursor()

    def _look_after(self, tx: SqliteTransaction) -> None:
        """Prune a little. And renewals are no events, yet after a reboot time must not go back behind them."""
        if tx.has_renewed and tx.now >= self._noted_at + NOTE_EVERY_US:
            self._noted_at = tx.now
            tx.note_time()
        self._since_prune += tx.appended
        if self._since_prune >= PRUNE_EVERY:
            self._since_prune = 0
            tx.execute(PRUNE)

    def _roll_back(self) -> None:
        # A full disk has rolled back already.
        try:
            if self._writer.in_transaction:
                self._writer.execute("rollback")
        except sqlite3.Error:
            self._writer.close()

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
            _left_behind.extend((self._writer, self._reader))
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


def _attempt(tx: SqliteTransaction, job: Job) -> None:
    """Work out the job's answer, or its refusal: raised before anything was written, so the others of the batch may go on."""
    before = tx.appended
    try:
        job.answer = tx.execute(job.command)
        job.error = None
    except HoldfastError as error:
        if isinstance(error, StoreError | StoreUnavailable) or tx.appended != before:
            raise
        job.error = error


def _call_done(jobs: list[Job]) -> None:
    for job in jobs:
        job.is_done = True


def _fail_all(jobs: list[Job], error: Exception) -> dict[str, int]:
    """Everyone gets the error, and nobody a hint."""
    for job in jobs:
        job.fail(error)
    return {}
