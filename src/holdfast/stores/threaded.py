"""Files for asyncio: one writer thread, and commits that tasks share.

Each event loop gathers what its tasks ask and hands it over as one batch. The next batch leaves one turn of the loop after the answers of
the last arrived: by then the tasks that were answered have asked again. What is large has a commit to itself, and takes turns with the
small: nobody waits for more than one batch of another.
"""

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
        # One for each event loop that uses the store; a loop that is gone takes its own with it.
        self._gatherers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Gatherer] = weakref.WeakKeyDictionary()
        self._latest: _Gatherer | None = None

    async def execute(self, command: Command[R]) -> R:
        is_large = command.measure(self.limits) > LARGE and not command.reads_only
        gatherer = self._gatherer()
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

    def _gatherer(self) -> "_Gatherer":
        loop = asyncio.get_running_loop()
        gatherer = self._latest  # Nearly always there is one event loop, and a weak look-up costs as much as a future.
        if gatherer is None or gatherer.loop is not loop:
            gatherer = self._gatherers.get(loop)
            if gatherer is None:
                gatherer = self._gatherers[loop] = _Gatherer(loop, self._writer.submit)
            self._latest = gatherer
        return gatherer

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
        self._writer.close()
        self.store.close()


class _Gatherer:
    """Gathers the jobs of one event loop into batches; used on that loop alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, submit: Callable[[list[Job], Callable[[], object]], None]) -> None:
        self.loop = loop
        self._submit = submit
        self._small: dict[Job, asyncio.Future[None]] = {}
        self._large: dict[Job, asyncio.Future[None]] = {}
        self._is_away = False
        self._was_small = False

    def ask(self, job: Job, *, is_large: bool) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self.loop.create_future()
        (self._large if is_large else self._small)[job] = future
        if not self._is_away:
            self._is_away = True
            self.loop.call_soon(self._dispatch)
        return future

    def withdraw(self, job: Job) -> bool:
        """Forget a job that has not left yet; answer whether that is so."""
        return (self._small.pop(job, None) or self._large.pop(job, None)) is not None

    def _dispatch(self) -> None:
        asked = self._next()
        if not asked:
            self._is_away = False
            return
        jobs, futures = list(asked), list(asked.values())
        try:
            self._submit(jobs, lambda: self.loop.call_soon_threadsafe(self._deliver, futures))
        except Closed as error:
            for job in jobs:
                job.fail(error)
            self._deliver(futures)

    def _next(self) -> dict[Job, asyncio.Future[None]]:
        """All that is small, or, in turn, the first that is large."""
        if self._large and (self._was_small or not self._small):
            self._was_small = False
            job = next(iter(self._large))
            return {job: self._large.pop(job)}
        asked, self._small, self._was_small = self._small, {}, True
        return asked

    def _deliver(self, futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)
        self.loop.call_soon(self._dispatch)


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
            jobs, deliver = batch
            if jobs:
                self._run_all(jobs)
            try:
                deliver()
            except RuntimeError:
                # The loop is closed: nobody waits any more, or will look after what was got.
                for job in jobs:
                    self._undo(job)

    def _undo(self, job: Job) -> None:
        if (undo := job.undo()) is not None:
            job.fail(asyncio.CancelledError())  # Once is enough.
            self._run_all([Job(undo)])

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
