"""Runs handlers as tasks of an event loop: the caller's own, or one in a thread."""

import asyncio
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from holdfast.workers.execution import Began, Finish
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.running.runs import Run


class TaskExecution:
    """One task a run. Without a running event loop it makes one, in a thread of its own, where it calls `leave` at the end."""

    def __init__(self, most: int, began: Began, finish: Finish, leave: Callable[[], Awaitable[None]]) -> None:
        self._most = most
        self._began = began
        self._finish = finish
        self._leave = leave
        # Only the loop's own thread touches these.
        self._line: deque[Run] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="holdfast-jobs", daemon=True)
            self._thread.start()

    def start(self, runs: Sequence[Run]) -> None:
        self._call(self._create, list(runs))

    def stop(self, run: Run) -> None:
        self._call(self._cancel, run)

    def abandon(self, run: Run) -> None:
        """A task that ignores its cancellation goes on, there is no other way to end one; the next begins in its place."""
        self._call(self._replace, run)

    def close(self) -> None:
        self._call(self._cancel_all)
        if self._thread is not None:
            self._call(self._loop.create_task, self._end())
            self._thread = None

    def _call(self, act: object, *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(act, *args)  # type: ignore[arg-type] # as the callers give them
        except RuntimeError:
            return  # The loop is closed, and every task ended with it.

    def _create(self, runs: list[Run]) -> None:
        self._line.extend(runs)
        self._fill()

    def _fill(self) -> None:
        while self._line and len(self._running) < self._most:
            run = self._line.popleft()
            if run.may_begin():
                task = run.handle = self._loop.create_task(self._perform(run), name=f"holdfast job {run.message.id}")
                run.hold.where = partial(_stack, task)
                self._running.add(task)

    async def _perform(self, run: Run) -> None:
        self._began(run)
        self._finish(run, await run.performance.run_async(cast("AsyncJobContext", run.job), unknown=run.is_unknown))
        self._running.discard(run.handle)
        self._abandoned.discard(run.handle)
        self._fill()

    def _cancel(self, run: Run) -> None:
        # One that has not begun will see for itself that it should not: cancelled now, it would never say how it ended.
        if run.handle is not None and run.began_at is not None:
            run.handle.cancel()

    def _replace(self, run: Run) -> None:
        if run.handle in self._running:
            self._running.discard(run.handle)
            self._abandoned.add(run.handle)
            self._fill()

    def _cancel_all(self) -> None:
        self._line.clear()
        for task in self._running | self._abandoned:
            task.cancel()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=1.0)
        await self._leave()
        await self._loop.shutdown_asyncgens()
        self._loop.stop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stack(task: asyncio.Task[None]) -> str:
    """Where a task waits, down to the innermost coroutine; the task itself knows only the outermost."""
    frames, waiting = [], cast("Any", task.get_coro())
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            frames.append((frame, frame.f_lineno))
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return "".join(traceback.StackSummary.extract(iter(frames)).format())
