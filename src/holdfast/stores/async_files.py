"""File stores for asyncio: one writer thread, shared commits, and separate threads for large reads."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from holdfast.commands import Command
from holdfast.commands.request import Request, current
from holdfast.commands.sizes import is_large
from holdfast.commands.together import only_reads
from holdfast.errors import Closed
from holdfast.process import forks
from holdfast.stores import Store
from holdfast.stores.async_batches import Gatherer, tell
from holdfast.stores.async_face import AsyncFace
from holdfast.stores.group_commit import Job
from holdfast.stores.per_loop import PerLoop
from holdfast.stores.waiting.waiters import Mark

R = TypeVar("R")

READERS = 4
"""How many large reads are under way at once, beside the writer."""


class FileStore(Store, Protocol):
    """What a file's store offers beyond the contract, so that tasks can share its commits."""

    def run(self, jobs: list[Job]) -> None: ...


class ThreadedStore(AsyncFace[FileStore]):
    """The async face of a file's store."""

    def __init__(self, store: FileStore) -> None:
        super().__init__(store)
        self._writer = _Workers(store.run)
        self._readers = _Workers(store.run, READERS)
        self._gatherers: PerLoop[Gatherer] = PerLoop(self._gather, Gatherer.close, Gatherer.abandon)

    async def execute(self, command: Command[R]) -> R:
        large = is_large(command, self.limits)
        job = Job(command, current.get())
        answer: R
        if large and only_reads(command):
            answer = await self._read(job)
            return answer
        gatherer = self._gatherers.get()
        try:
            await gatherer.ask(job, is_large=large)
        except BaseException:
            # Cancelled: nobody will look after what it gets. The loop may be about to end, so the writer sees to it.
            if not gatherer.withdraw(job):
                self._writer.take_back(job)
            raise
        answer = job.result()
        return answer

    async def _read(self, job: Job) -> Any:
        """Read beside the writer, so that no commit waits for it."""
        job.request = Request(job.request.whose, job.request.most_s)
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._readers.submit([job], lambda: loop.call_soon_threadsafe(tell, [done]))
        try:
            await done
        except BaseException:
            job.request.is_given_up = True
            raise
        return job.result()

    def _gather(self) -> Gatherer:
        return Gatherer(asyncio.get_running_loop(), self._writer.submit)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self.store.waiters.wait_async(mark, timeout_s, due_in_s, poll_s)

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        self.stop()
        self.store.close()

    def stop(self) -> None:
        """End the thread, once it has done what it was handed."""
        self._readers.close()
        self._writer.close()
        self._gatherers.close()


class _Workers:
    """The threads, one unless said otherwise, that run what event loops hand over; started when they are needed."""

    def __init__(self, run: Callable[[list[Job]], None], most: int = 1) -> None:
        self._run = run
        self._most = most
        self._is_closed = False
        self.begin_in_child()
        forks.look_after(self)

    def begin_in_child(self) -> None:
        """Start without a thread, in a forked child again: the parent's, and what they were handed, stayed behind."""
        # Guards _threads, _busy and _is_closed, and that nothing is handed over after the end.
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._busy = 0  # How many batches were handed over and are not done.
        self._batches: queue.SimpleQueue[tuple[list[Job], Callable[[], object]] | None] = queue.SimpleQueue()

    def submit(self, jobs: list[Job], deliver: Callable[[], object]) -> None:
        with self._lock:
            if self._is_closed:
                message = "The store was closed; open it again."
                raise Closed(message)
            self._busy += 1
            if len(self._threads) < min(self._busy, self._most):
                self._threads.append(threading.Thread(target=self._work, name="holdfast-writer", daemon=True))
                self._threads[-1].start()
            self._batches.put((jobs, deliver))

    def take_back(self, job: Job) -> None:
        """Undo a job that was handed over before, once it is done."""
        with self._lock:
            if not self._is_closed:
                self._busy += 1
                self._batches.put(([], lambda: self._undo(job)))

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            self._do(*batch)
            del batch  # It refers to its loop, and the next may be long in coming.
            with self._lock:
                self._busy -= 1

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
            threads, self._threads = self._threads, []
            for _ in threads:
                self._batches.put(None)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()
