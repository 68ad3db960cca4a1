"""Runs handlers in threads of this process."""

import threading
from collections.abc import Sequence
from queue import SimpleQueue

from holdfast.workers.execution import Began, Finish
from holdfast.workers.running.runs import Run


class ThreadExecution:
    """As many threads as there were ever runs at once; they are daemons, so that a handler that hangs keeps no program alive."""

    def __init__(self, most: int, began: Began, finish: Finish) -> None:
        self._most = most
        self._began = began
        self._finish = finish
        self._line: SimpleQueue[Run | None] = SimpleQueue()
        # Guards the two below.
        self._lock = threading.Lock()
        self._threads = 0
        self._running = 0

    def start(self, runs: Sequence[Run]) -> None:
        with self._lock:
            self._running += len(runs)
            missing = min(self._running, self._most) - self._threads
            self._threads += max(0, missing)
        for _ in range(missing):
            threading.Thread(target=self._work, name="holdfast-job", daemon=True).start()
        for run in runs:
            self._line.put(run)

    def stop(self, run: Run) -> None:
        """Nothing interrupts a thread: its job says that it should stop."""

    def abandon(self, run: Run) -> None:
        with self._lock:
            if run.handle is not None:  # Else its thread is done with it, and free for the next.
                run.handle = None
                self._running -= 1
                self._threads -= 1

    def close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, 0
        for _ in range(threads):
            self._line.put(None)

    def _work(self) -> None:
        while (run := self._line.get()) is not None:
            if not self._take(run):
                continue
            run.hold.thread_id = threading.get_ident()
            self._began(run)
            outcome = run.performance.run(run.job, unknown=run.is_unknown)
            was_abandoned = not self._leave(run)
            self._finish(run, outcome)
            if was_abandoned:
                return  # Another thread has taken its place.
            run = None  # A thread that waits keeps no message alive.

    def _take(self, run: Run) -> bool:
        run.handle = self  # First: whoever finds it taken must find it running.
        if run.may_begin():
            return True
        with self._lock:
            self._running -= 1
        return False  # It was given back.

    def _leave(self, run: Run) -> bool:
        """Whether this thread still counts as the one that runs it."""
        with self._lock:
            if run.handle is None:
                return False
            run.handle = None
            self._running -= 1
            return True
