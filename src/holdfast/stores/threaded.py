"""Files for asyncio: one writer thread, and commits that tasks share."""

import asyncio
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Protocol, TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed
from holdfast.stores import Guarantees
from holdfast.stores.committing import Job
from holdfast.stores.gathering import Gatherer
from holdfast.stores.loops import PerLoop
from holdfast.stores.waiting import Mark, Waiters

R = TypeVar("R")

LARGE = 100
"""A command that writes, and is about more things than this, is large."""


class FileStore(Protocol):
    """What a file's store offers beyond the contract, so that tasks can share its commits."""

    url: str
    limits: Limits
    guarantees: Guarantees
    waiters: Waiters

    def run(self, jobs: list[Job]) -> None: ...

    def listen(self) -> None: ...

    def wall_offset_us(self) -> int: ...

    def close(self) -> None: ...


class ThreadedStore:
    """The async face of a file's store."""

    def __init__(self, store: FileStore) -> None:
        self.store = store
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.guarantees: Guarantees = store.guarantees
        self.waiters: Waiters = store.waiters
        self._writer = _Writer(store.run)
        self._gatherers: PerLoop[Gatherer] = PerLoop(self._gather, Gatherer.close, Gatherer.abandon)

    async def execute(self, command: Command[R]) -> R:
        is_large = command.measure(self.limits) > LARGE and not command.reads_only
        gatherer = self._gatherers.get()
        job = Job(command)
        try:
            await gatherer.ask(job, is_large=is_large)
        except BaseException:
            # Cancelled: nobody will look after what it gets. The loop may be about to end, so the writer sees to it.
            if not gatherer.withdraw(job):
                self._writer.take_back(job)
            raise
        answer: R = job.result()
        return answer

    def _gather(self) -> Gatherer:
        return Gatherer(asyncio.get_running_loop(), self._writer.submit)

    def mark(self, topic: str) -> Mark:
        self.store.listen()
        return self.store.waiters.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self.store.waiters.wait_async(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self.store.wall_offset_us()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        self.stop()
        self.store.close()

    def stop(self) -> None:
        """End the thread, once it has done what it was handed."""
        self._writer.close()
        self._gatherers.close()


class _Writer:
    """The one thread, started at the first batch, that runs what event loops hand over."""

    def __init__(self, run: Callable[[list[Job]], None]) -> None:
        self._run = run
        self._is_closed = False
        self.begin()
        _writers.add(self)

    def begin(self) -> None:
        """Start without a thread, in a forked child again: the parent's, and what it was handed, stayed behind."""
        # Guards _thread and _is_closed, and that nothing is handed over after the end.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._batches: queue.SimpleQueue[tuple[list[Job], Callable[[], object]] | None] = queue.SimpleQueue()

    def submit(self, jobs: list[Job], deliver: Callable[[], object]) -> None:
        with self._lock:
            if self._is_closed:
                message = "The store was closed; open it again."
                raise Closed(message)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="holdfast-writer", daemon=True)
                self._thread.start()
            self._batches.put((jobs, deliver))

    def take_back(self, job: Job) -> None:
        """Undo a job that was handed over before, once it is done."""
        with self._lock:
            if not self._is_closed:
                self._batches.put(([], lambda: self._undo(job)))

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            self._do(*batch)
            del batch  # It refers to its loop, and the next may be long in coming.

    def _do(self, jobs: list[Job], deliver: Callable[[], object]) -> None:
        if jobs:
            self._run_all(jobs)
        try:
            deliver()
        except RuntimeError:
            # The loop is closed: nobody waits any more, or will look after what was got.
            for job in jobs:
                self._undo(job)

    def _undo(self, job: Job) -> None:
        if undo := job.undo():
            job.fail(asyncio.CancelledError())  # Once is enough.
            self._run_all(undo)

    def _run_all(self, jobs: list[Job]) -> None:
        try:
            self._run(jobs)
        except BaseException as error:  # noqa: BLE001 - the callers raise it: they wait in another thread
            for job in jobs:
                if not job.is_done:
                    job.fail(error)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            thread, self._thread = self._thread, None
            self._batches.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()


_writers: "weakref.WeakSet[_Writer]" = weakref.WeakSet()


def _begin_all() -> None:
    for writer in list(_writers):
        writer.begin()


os.register_at_fork(after_in_child=_begin_all)
