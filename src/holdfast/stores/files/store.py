"""A store in one file, or one folder, that threads, tasks and processes share."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from holdfast.clock import Clock, Host
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.commands.together import only_reads
from holdfast.errors import Closed, StoreUnavailable
from holdfast.stores import AsyncStore, Guarantees, StoreDefaults
from holdfast.stores.async_files import ThreadedStore
from holdfast.stores.files import Durability
from holdfast.stores.files.replaced import Watchman
from holdfast.stores.files.turns import Turns
from holdfast.stores.files.wakeups import Wakeups
from holdfast.stores.group_commit import Committer, Job, fail_all, read_each
from holdfast.stores.renewals import DirectRenewer
from holdfast.stores.waiting.waiters import Mark, Waiters, waiters_for

R = TypeVar("R")

TURN_S = 30.0
"""How long other processes may keep a turn before we give up."""


class SharedFileStore(StoreDefaults, ABC):
    """Commits that callers share, during turns that processes take; what the file holds is a subclass's own."""

    url: str
    guarantees: Guarantees
    clock: Clock

    def __init__(self, path: str | os.PathLike[str], durability: Durability, limits: Limits, clock: Clock | None, host: Host) -> None:
        if durability not in ("power", "process"):
            message = f"durability must be 'power' or 'process', not {durability!r}"
            raise ValueError(message)
        self.path: str = str(Path(path).absolute())
        self.limits: Limits = limits
        self.durability: Durability = durability
        self._host: Host = host
        self._given_clock: Clock | None = clock
        self._is_closed: bool = False
        self._is_inherited: bool = False
        self._tasks: ThreadedStore | None = None

    @abstractmethod
    def _connect(self) -> None:
        """Open or create the file and set `clock`, during a turn: two processes may open a new one at once."""

    @abstractmethod
    def _read(self, command: Command[R]) -> R:
        """Answer from what is committed, without a turn."""

    @abstractmethod
    def _transact(self, jobs: list[Job]) -> dict[str, int]:
        """Have the jobs done, during a turn, and say who is to be woken."""

    @abstractmethod
    def _release(self) -> None:
        """Close the file, during a turn."""

    @abstractmethod
    def _begin_in_child(self) -> None:
        """In a forked child, at its first use of the store: open the file again."""

    def _open(self, data: str | os.PathLike[str]) -> None:
        """Open what `data` stands beside: turns and hints are by it."""
        self._committer = Committer(self._run_batch)
        self._turns = Turns.shared(data)
        try:
            with self._turn():
                self._connect()
        except BaseException:
            self._turns.close()
            raise
        self._watchman = Watchman(data)
        self.waiters: Waiters = waiters_for(self.clock)
        self._wakeups = Wakeups(data, self.waiters.hint)

    def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        if self._is_inherited:
            self._begin_in_child()
        if only_reads(command):
            self._watchman.look()
            return self._read(command)
        return self._committer.execute(command)

    def run(self, jobs: list[Job]) -> None:
        """Have the jobs done, for callers who gather several; their commands were measured before."""
        if self._is_inherited:
            self._begin_in_child()
        if all(only_reads(job.command) for job in jobs):
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

    def hint_committed(self, topic: str) -> None:
        self.waiters.hint(topic)
        self._wakeups.post([(topic, 1)])

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self.waiters.wait(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self.clock.wall_offset_us()

    def for_tasks(self) -> AsyncStore:
        if self._tasks is None:
            self._tasks = ThreadedStore(self)
        return self._tasks

    def for_renewals(self) -> DirectRenewer:
        return DirectRenewer(self)

    def close(self) -> None:
        if self._is_closed:
            return
        if self._tasks is not None:
            self._tasks.stop()
        self._is_closed = True
        if self._is_inherited:
            return
        self.waiters.close()
        self._wakeups.close()
        with self._turn():
            self._release()
        self._turns.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._turns.mutex:
            self._turns.take(TURN_S)
            try:
                yield
            finally:
                self._turns.done()

    def _run_batch(self, jobs: list[Job]) -> None:
        """Have the jobs done during a turn, and tell who waits for what they did."""
        turns = self._turns
        with turns.mutex:
            self._refuse_if_closed()
            self._watchman.look()
            try:
                turns.take(TURN_S)
                hints = self._transact(jobs)
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

    def _refuse_two_kernels(self) -> None:
        if not self._turns.alone():
            message = f"{self.path} is open on another machine, or in another kernel: use it from one at a time, on a local disk"
            raise StoreUnavailable(message)
