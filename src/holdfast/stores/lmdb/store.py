"""A folder with an LMDB environment that threads, tasks and processes share."""

import os
import threading
import weakref
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import lmdb

from holdfast.clock import HOST, AnchoredClock, Clock, Host
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed, StoreError, StoreUnavailable
from holdfast.stores import AsyncStore, Guarantees
from holdfast.stores.committing import Committer, Job, read_each
from holdfast.stores.lmdb.anchor import read_anchor
from holdfast.stores.lmdb.environment import Durability, Environment
from holdfast.stores.lmdb.failures import translate
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.lmdb.writer import Writer
from holdfast.stores.sqlite.turns import Turns
from holdfast.stores.sqlite.wakeups import Wakeups
from holdfast.stores.threaded import ThreadedStore
from holdfast.stores.waiting import Mark, Waiters, waiters_for

R = TypeVar("R")

TURN_S = 30.0
"""How long other processes may keep a turn before we give up."""

MAP_BYTES = 2**36
"""How large an environment may grow, unless told otherwise."""

_open_stores: "weakref.WeakSet[LmdbStore]" = weakref.WeakSet()
_beginning = threading.Lock()
"""Held while a store is opened anew in a child."""


class LmdbStore:
    """A store in one LMDB environment.

    `durability="power"` survives a loss of power; `"process"` survives the death of every process, but a loss of power may then damage the
    environment, so all its processes should choose the same. `map_size` is how many bytes it may take; what is acknowledged, removed or
    pruned finds room even beyond.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        limits: Limits | None = None,
        map_size: int = MAP_BYTES,
        clock: Clock | None = None,
        host: Host = HOST,
    ) -> None:
        if durability not in ("power", "process"):
            message = f"durability is {durability!r}: choose 'power' or 'process'"
            raise ValueError(message)
        self.path: str = str(Path(path).absolute())
        self.url: str = f"lmdb:///{quote(self.path)}?durability={durability}"
        self.limits: Limits = limits or Limits()
        self.map_size = map_size
        version = ".".join(str(part) for part in lmdb.version())
        self.guarantees: Guarantees = Guarantees(durability, "processes", "the host's, since its boot", f"LMDB {version}")
        self._durability = durability
        self._host = host
        self._given_clock = clock
        self._is_closed = False
        self._is_inherited = False
        self._open()
        _open_stores.add(self)

    def _open(self) -> None:
        self._make_folder()
        self._committer = Committer(self._run_batch)
        # The side file and the sockets stand in the folder, beside the data.
        data = Path(self.path, "data.mdb")
        self._turns = Turns.shared(data)
        try:
            with self._turns.mutex:
                self._turns.take(TURN_S)
                try:
                    self._share()
                finally:
                    self._turns.done()
        except BaseException:
            self._turns.close()
            raise
        self.waiters: Waiters = waiters_for(self.clock)
        self._wakeups = Wakeups(data, self.waiters.hint)

    def _make_folder(self) -> None:
        try:
            Path(self.path).mkdir(exist_ok=True)
        except OSError as error:
            message = f"the folder {self.path} cannot be made: create it, or its parent, where you may write ({error})"
            raise StoreError(message) from error

    def _share(self) -> None:
        """Open or create the environment, during a turn: two processes may open a new one at once."""
        try:
            self._environment = Environment.share(self.path, self._durability, self.map_size)
        except (lmdb.Error, OSError) as error:
            raise translate(error, self.path) from error
        try:
            self.clock: Clock = self._given_clock or self._anchored_clock()
        except BaseException as error:
            self._environment.release()
            if isinstance(error, lmdb.Error):
                raise translate(error, self.path) from error
            raise
        self._writer = Writer(self._environment, self.clock, self.map_size)

    def _anchored_clock(self) -> AnchoredClock:
        environment = self._environment
        environment.gate.enter()
        try:
            with environment.lmdb.begin(write=True) as txn:
                anchor, is_new_boot = read_anchor(txn, environment.tables, self._host)
                if is_new_boot and not self._turns.alone():
                    message = f"{self.path} is open on another machine, or in another kernel: use it from one at a time, on a local disk"
                    raise StoreUnavailable(message)
        finally:
            environment.gate.leave()
        return AnchoredClock(anchor, self._host)

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

    def for_tasks(self) -> AsyncStore:
        return ThreadedStore(self)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        _open_stores.discard(self)
        if self._is_inherited:
            return
        self.waiters.close()
        self._wakeups.close()
        with self._turns.mutex:
            self._turns.take(TURN_S)
            try:
                self._environment.release()
            finally:
                self._turns.done()
        self._turns.close()

    def _read(self, command: Command[R]) -> R:
        """Answer from what is committed, without a turn."""
        self._refuse_if_closed()
        try:
            return self._read_once(command)
        except lmdb.MapResizedError:
            # Another process made the map larger; with the turn, this one does too.
            return self._committer.execute(command)
        except lmdb.ReadersFullError:
            return self._committer.execute(command)
        except lmdb.Error as error:
            raise translate(error, self.path) from error

    def _read_once(self, command: Command[R]) -> R:
        environment = self._environment
        environment.gate.enter()
        try:
            self._refuse_if_closed()
            return self._answer(environment.lmdb.begin(), command)
        finally:
            environment.gate.leave()

    def _answer(self, txn: "lmdb.Transaction[bytes]", command: Command[R]) -> R:
        tx = LmdbTransaction(txn, self._environment.tables, self.clock)
        try:
            self._environment.refuse_if_moved(txn)
            return command.write(tx, command.check(tx))
        finally:
            txn.abort()
            tx.end()
            del txn

    def _run_batch(self, jobs: list[Job]) -> None:
        """Run the jobs in one transaction; if that fails for any reason but a refusal, each in one of its own."""
        with self._turns.mutex:
            self._refuse_if_closed()
            try:
                self._turns.take(TURN_S)
                hints = self._writer.transact(jobs)
                if hints is None and len(jobs) > 1:
                    hints = {}
                    for job in jobs:
                        hints |= self._writer.transact([job]) or {}
            finally:
                self._turns.done()
        if hints:
            self.waiters.hint_each(hints.items())
            self._wakeups.post(list(hints.items()))

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            message = f"{self.path} was closed: open the store again"
            raise Closed(message)

    def leave_to_parent(self) -> None:
        """In a forked child: put away what is the parent's. Most children never use the store, so nothing is opened yet."""
        self.waiters.reset()
        self._is_inherited = True

    def _begin_in_child(self) -> None:
        with _beginning:
            if self._is_inherited:
                self._open()
                self._is_inherited = False


def _leave_all_to_parent() -> None:
    for store in list(_open_stores):
        store.leave_to_parent()


os.register_at_fork(before=_beginning.acquire, after_in_parent=_beginning.release, after_in_child=_beginning.release)
os.register_at_fork(after_in_child=_leave_all_to_parent)
