"""Commits batches of commands to an environment, and grows its map."""

from typing import Any

import lmdb

from holdfast.clock import Clock
from holdfast.commands import Claim, Clear, Command, Extend, Move, Prune, Release, Renew, Settle, Together, Write
from holdfast.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from holdfast.stores.group_commit import Job, attempt, call_done, fail_all
from holdfast.stores.lmdb.environment import Environment
from holdfast.stores.lmdb.failures import UNREADABLE, translate
from holdfast.stores.lmdb.transaction import LmdbTransaction

PRUNE_EVERY = 100
PRUNE = Prune(limit=2 * PRUNE_EVERY, done=False)

RESERVE_PART = 8
RESERVE_BYTES = 2**20
"""One part in so many, or so much, lies beyond the limit for commands that make room: even a removal writes pages first."""

NONE_YET = 2**63
"""A transaction's number that none will have."""

TRIES = 64
"""Each finds the map at least a little larger."""


class Writer:
    """Runs the jobs of the process that has the turn."""

    def __init__(self, environment: Environment, clock: Clock, limit_bytes: int) -> None:
        self._environment = environment
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._reserve_bytes = max(limit_bytes // RESERVE_PART, RESERVE_BYTES)
        self._since_prune = 0
        self._leaps = True
        self._number = NONE_YET  # of the transaction under way

    def transact(self, jobs: list[Job]) -> dict[str, int] | None:
        """Commit what the jobs do and return the hints it gives; None when nothing was written. A lone job then has the error."""
        for _ in range(TRIES):
            try:
                return self._try_in_order(jobs)
            except lmdb.MapResizedError:
                self._environment.follow()
            except lmdb.PanicError:
                self._environment.is_broken = True
            except lmdb.MapFullError as error:
                if not self._grow(jobs):
                    return self._give_up(jobs, error)
            except Exception as error:
                if jobs[0].is_done:  # What a signal's handler raised, after the commit.
                    raise
                return self._give_up(jobs, error)
        return self._give_up(jobs, StoreUnavailable(f"the map of {self._environment.folder} keeps changing: try again"))

    def _try_in_order(self, jobs: list[Job]) -> dict[str, int]:
        """Try, in an environment that works; if the commit fails, find out what became of it."""
        environment = self._environment
        if environment.is_broken:
            environment.reopen()
        try:
            return self._try(jobs)
        except _CommitFailed as failed:
            environment.reopen()
            with environment.gate.place():
                is_there = environment.has_committed(failed.number)
            if not is_there:
                raise failed.error from None
            # It can be read, and nobody knows whether it is on disk.
            unknown = OutcomeUnknown(
                f"the commit to {environment.folder} failed and may be lost: check before you repeat it ({failed.error})"
            )
            return fail_all(jobs, unknown)

    def _try(self, jobs: list[Job]) -> dict[str, int]:
        environment = self._environment
        with environment.gate.place():
            self._number = NONE_YET
            try:
                # Aborted on the way out, unless it was committed.
                with environment.lmdb.begin(write=True) as txn:
                    try:
                        return self._fill(txn, jobs)
                    finally:
                        # Errors keep frames alive, and a forked child could then not open the environment.
                        del txn
            except (lmdb.Error, _CommitFailed):
                raise
            except BaseException:
                # A Ctrl-C strikes before LMDB begins to commit or after it has ended, never in between.
                if environment.has_committed(self._number):
                    call_done(jobs)
                raise

    def _fill(self, txn: "lmdb.Transaction[bytes]", jobs: list[Job]) -> dict[str, int]:
        tx = LmdbTransaction(txn, self._environment.tables, self._clock)
        tx.leaps = self._leaps
        self._number = txn.id()
        try:
            self._environment.refuse_if_moved(txn)
            self._check_room(txn, jobs)
            for job in jobs:
                attempt(tx, job)
            self._prune_a_little(tx)
            self._commit(txn)
            call_done(jobs)
            self._leaps = tx.leaps
        finally:
            tx.end()
            del txn
        return tx.hints

    def _commit(self, txn: "lmdb.Transaction[bytes]") -> None:
        try:
            txn.commit()
        except lmdb.MapFullError:
            raise
        except lmdb.Error as error:
            raise _CommitFailed(self._number, error) from error
        finally:
            del txn

    def _give_up(self, jobs: list[Job], error: Exception) -> dict[str, int] | None:
        if len(jobs) == 1:
            jobs[0].fail(translate(error, self._environment.folder) if isinstance(error, UNREADABLE) else error)
        return None

    def _grow(self, jobs: list[Job]) -> bool:
        """Make the map larger, for commands that make room even beyond the limit."""
        if self._environment.grow(self._limit_bytes):
            return True
        return all(makes_room(job.command) for job in jobs) and self._environment.grow(self._limit_bytes + self._reserve_bytes)

    def _check_room(self, txn: "lmdb.Transaction[bytes]", jobs: list[Job]) -> None:
        """Refuse what would use the reserve up."""
        environment, limit = self._environment, self._limit_bytes
        if environment.mapped_bytes <= limit or environment.used_bytes(txn) < limit or all(makes_room(job.command) for job in jobs):
            return
        message = f"{environment.folder} has reached its {limit:,} bytes: remove something or open it with a larger map_size"
        raise StoreFull(message)

    def _prune_a_little(self, tx: LmdbTransaction) -> None:
        self._since_prune += tx.appended
        if self._since_prune >= PRUNE_EVERY:
            self._since_prune = 0
            tx.execute(PRUNE)


def makes_room(command: Command[Any]) -> bool:
    """Whether the command is one of those that let an environment become emptier."""
    if isinstance(command, Together):
        return all(makes_room(part) for part in command.commands)
    if isinstance(command, Write):
        return all(change.do in ("delete", "compare") for change in command.changes)
    return command.reads_only or isinstance(command, Claim | Clear | Extend | Move | Prune | Release | Renew | Settle)


class _CommitFailed(Exception):  # noqa: N818 - it is what happened, and nobody outside sees it
    """The environment must be opened again, and asked what became of the transaction of this number."""

    def __init__(self, number: int, error: lmdb.Error) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error
