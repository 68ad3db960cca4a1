"""Commits commands to a SQLite file, alone or several at once."""

import sqlite3
from secrets import token_hex

from holdfast.clock import Clock
from holdfast.commands import Prune
from holdfast.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from holdfast.stores.files import Durability
from holdfast.stores.group_commit import Job, attempt, call_done, fail_all
from holdfast.stores.sqlite.fast.commits import carry_out_alike
from holdfast.stores.sqlite.file import UNREADABLE, open_connection, translate
from holdfast.stores.sqlite.transaction import SqliteTransaction

PRUNE_EVERY = 100
NOTE_EVERY_US = 1_000_000
PRUNE = Prune(limit=2 * PRUNE_EVERY, done=False)


class Writer:
    """Runs jobs on one connection, for the process that has the turn."""

    def __init__(self, connection: sqlite3.Connection, path: str, durability: Durability, clock: Clock) -> None:
        self.connection: sqlite3.Connection = connection
        self._path = path
        self._durability: Durability = durability
        self._clock = clock
        self._since_prune = 0
        self._noted_at = 0
        self._laned: set[str] = set()
        self.opener: str | None = token_hex(8)
        """Who lets the numbers leap to the clock; None once that is committed."""

    def transact(self, jobs: list[Job]) -> dict[str, int]:
        """Run the jobs in one transaction; if that fails for any reason but a refusal, each in one of its own. Returns their hints."""
        if len(jobs) == 1:
            return self._transact_with_room(jobs[0])
        hints = self._transact_all(jobs)
        return self._transact_each(jobs) if hints is None else hints

    def close(self) -> None:
        self.connection.close()

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
        """Commit what the job does; return its hints. Raises with nothing written, unless the job is done or the outcome is unknown."""
        try:
            sql = self._cursor()
            sql.execute("begin immediate")
            tx = SqliteTransaction(sql, self._clock, self.opener, self._laned)
            job.answer = job.carry_out(tx.execute)
            self._look_after(tx)
            self._commit(sql, tx, [job])
        except BaseException as error:
            self._roll_back()
            if isinstance(error, UNREADABLE):
                raise translate(error, self._path) from error
            raise
        return tx.hints

    def _transact_each(self, jobs: list[Job]) -> dict[str, int]:
        hints: dict[str, int] = {}
        for job in jobs:
            if job.is_done:  # It took too long.
                continue
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
            tx = SqliteTransaction(sql, self._clock, self.opener, self._laned)
            for job in carry_out_alike(tx, jobs):
                attempt(tx, job)
            self._look_after(tx)
            self._commit(sql, tx, jobs)
        except BaseException as error:
            self._roll_back()
            if not isinstance(error, Exception):
                raise
            failed = translate(error, self._path) if isinstance(error, UNREADABLE) else error
            # Alone, each would wait as long again; and what is perhaps written must not be written twice.
            return fail_all(jobs, failed) if isinstance(failed, StoreUnavailable) else None
        return tx.hints

    def _commit(self, sql: sqlite3.Cursor, tx: SqliteTransaction, jobs: list[Job]) -> None:
        """Commit, and only then call the jobs done."""
        try:
            sql.execute("commit")
            call_done(jobs)
            self.opener = tx.opener
        except sqlite3.Error as error:
            # Its state is not to be trusted; the next transaction opens another. A cursor left open would keep it, and its lock.
            self._roll_back()
            sql.close()
            self.connection.close()
            if (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
                raise
            message = f"the commit to {self._path} failed and may or may not be on disk: check before you repeat it ({error})"
            raise OutcomeUnknown(message) from error
        except BaseException:
            # A Ctrl-C strikes before SQLite begins or after it has ended, never in between.
            if not self.connection.in_transaction:
                call_done(jobs)
            raise

    def _cursor(self) -> sqlite3.Cursor:
        try:
            return self.connection.cursor()
        except sqlite3.ProgrammingError:
            self.connection = open_connection(self._path, self._durability)
            return self.connection.cursor()

    def _look_after(self, tx: SqliteTransaction) -> None:
        """Prune a little. And renewals are no events, yet after a reboot time must not go back behind them."""
        if tx.has_renewed and tx.now >= self._noted_at + NOTE_EVERY_US:
            self._noted_at = tx.now
            tx.note_time()
        self._since_prune += tx.appended
        if self._since_prune >= PRUNE_EVERY and not tx.is_sealed:
            self._since_prune = 0
            tx.execute(PRUNE)
        if tx.shifts:
            tx.save_counts()

    def _roll_back(self) -> None:
        # A full disk has rolled back already.
        try:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
        except sqlite3.Error:
            self.connection.close()
