"""Who may go on in a run: a handler in a thread has one branch, one in a task may have many."""

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from holdfast.workers.steps.history import History
from holdfast.workers.steps.rows import Key
from holdfast.workers.steps.waits import Suspended, Wait

R = TypeVar("R")

CHANGED_S: Final = 1.0
"""How long a step waits to begin while recorded ones are not asked for, and none of them is."""

QUIET_S: Final = 0.005
"""How long every branch must have waited before the job sleeps: another one may just be about to begin something."""

POLL_S: Final = 1.0
"""How often to look for signals while another branch is at work."""


class Turns:
    """The one branch of a handler in a thread."""

    suspended: Suspended | None

    def __init__(self, history: History) -> None:
        self._history = history
        self.suspended = None

    @contextmanager
    def active(self) -> Iterator[None]:
        """Something is done for the handler."""
        if self.suspended is not None:
            raise self.suspended
        yield

    @property
    def branch(self) -> Any:
        """Which branch of the handler this is."""
        return None

    def comes_after(self, branch: Any) -> bool:  # noqa: ARG002 - there is no other
        """Whether what is asked for now comes after all that the branch has asked for."""
        return True

    def alone(self, act: Callable[[], None]) -> None:
        """Do something that only one branch at a time may do."""
        act()

    def admit(self, key: Key) -> None:
        """Return when a new step may begin; raises `StepsChanged` if it never may."""
        if self._history.unasked:
            raise self._history.changed(key)

    def wait(self, wait: Wait) -> None:
        """Wait in place if that is short, else end the run."""
        setting = self._history.setting
        left_s = float("inf") if wait.due is None else wait.due - setting.now()
        if left_s >= max(setting.in_place_s, 0.0) and left_s > 0:
            self.suspended = Suspended([wait])
            raise self.suspended
        time.sleep(max(0.0, left_s))

    def call(self, function: Callable[..., Any], args: Any, kwargs: Any, timeout_s: float | None) -> Any:
        """Call a function of the user's."""
        if timeout_s is not None:
            raise ValueError("timeout_s= needs an async function: nothing can interrupt a thread")
        answer = function(*args, **kwargs)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError(f"{function!r} is async, and this job's function is not: make both async, or both sync")
        return answer

    def pause(self, seconds: float) -> None:
        """Wait before the store is tried again."""
        time.sleep(seconds)

    def request_cancel(self) -> None:
        """Let the next step see that the job is to be cancelled."""
        self._history.is_cancel_requested = True


class AsyncTurns:
    """The branches of a handler in a task: the job sleeps when all of them wait for what does not happen here."""

    suspended: Suspended | None

    def __init__(self, history: History, task: "asyncio.Task[Any]") -> None:
        self._history = history
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._active = 0
        self._waits: dict[asyncio.Future[None], Wait] = {}
        self._blocked: set[asyncio.Future[None]] = set()
        self._quiet: asyncio.TimerHandle | None = None
        self.suspended = None
        history.on_asked = self._was_asked

    @contextmanager
    def active(self) -> Iterator[None]:
        """Something is done for the handler: the job does not sleep meanwhile."""
        if self.suspended is not None:
            raise asyncio.CancelledError
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            self._look_soon()

    @property
    def branch(self) -> "asyncio.Task[Any] | None":
        """Which branch of the handler this is."""
        return asyncio.current_task()

    def comes_after(self, branch: "asyncio.Task[Any]") -> bool:
        """Whether what is asked for now comes after all that the branch has asked for."""
        return branch is asyncio.current_task() or branch.done()

    async def alone(self, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something that only one branch at a time may do."""
        async with self._lock:
            await act()

    async def admit(self, key: Key) -> None:
        """Return when a new step may begin: when every recorded one was asked for. Raises `StepsChanged` if that does not happen."""
        history = self._history
        while history.unasked:
            left, asked = len(history.unasked), self._loop.create_future()
            self._blocked.add(asked)
            try:
                await asyncio.wait([asked], timeout=CHANGED_S)
            finally:
                self._blocked.discard(asked)
            if not asked.done() and len(history.unasked) == left:
                raise history.changed(key)

    def _was_asked(self) -> None:
        if not self._history.unasked:
            for asked in self._blocked:
                if not asked.done():
                    asked.set_result(None)

    async def wait(self, wait: Wait) -> None:
        """Return when it is worth looking again; if that is not soon and no other branch is at work, the run ends here."""
        setting, ended = self._history.setting, self._loop.create_future()
        left_s = float("inf") if wait.due is None else max(0.0, wait.due - setting.now())
        looks_in_s = POLL_S if wait.names else float("inf")
        self._waits[ended] = wait
        self._active -= 1
        handle = None
        # On a clock that a test moves, only what is due already ends here.
        if left_s <= 0 or (setting.in_place_s and min(left_s, looks_in_s) < float("inf")):
            handle = self._loop.call_later(min(left_s, looks_in_s), _end, ended)
        self._look_soon()
        try:
            await ended
        finally:
            self._active += 1
            self._waits.pop(ended, None)
            if handle is not None:
                handle.cancel()

    def _look_soon(self) -> None:
        if self._loop.is_closed():
            return  # The process ends, and a branch that was left behind with it.
        if self._quiet is not None:
            self._quiet.cancel()
        waits = self._waits and not self._active and self.suspended is None
        self._quiet = self._loop.call_later(QUIET_S, self._look) if waits else None

    def _look(self) -> None:
        if self._active or self.suspended is not None or self._task.done():
            return
        setting = self._history.setting
        now, dues = setting.now(), [wait.due for wait in self._waits.values() if wait.due is not None]
        if self._waits and (not dues or min(dues) - now >= max(setting.in_place_s, 0.0)):
            self.suspended = Suspended(list(self._waits.values()))
            self._task.cancel()

    async def call(self, function: Callable[..., Any], args: Any, kwargs: Any, timeout_s: float | None) -> Any:
        """Call a function of the user's."""
        async with asyncio.timeout(timeout_s):
            answer = function(*args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer

    async def pause(self, seconds: float) -> None:
        """Wait before the store is tried again."""
        await asyncio.sleep(seconds)

    def request_cancel(self) -> None:
        """Let the branches that wait, or else the next step, see that the job is to be cancelled; from any thread."""
        self._history.is_cancel_requested = True
        self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        for ended in list(self._waits):
            _end(ended)


def _end(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)
