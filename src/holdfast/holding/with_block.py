"""The body of a context: a task is cancelled when its hold is lost, a thread has to check."""

import asyncio
import io
import threading
from typing import Any, Protocol, TypeVar

from holdfast.holding.hold import Hold


class Losable(Protocol):
    """A context whose hold may be lost."""

    @property
    def is_lost(self) -> bool: ...


C = TypeVar("C", bound=Losable)


class AsyncBody:
    """The rest of the running task, until it leaves: cancelled when the hold is lost.

    A timer on the task's own loop ends the trust even while the store, and with it every renewal, hangs.
    """

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task else 0
        self._is_inside = True
        self._has_cancelled = False
        self._timer: asyncio.TimerHandle | None = None
        hold.where = self._where
        hold.on_lost(self._interrupt)
        self._look()

    @staticmethod
    def current() -> object:
        """What tells the running body from others: its task."""
        return asyncio.current_task()

    def leave(self, error: BaseException | None) -> bool:
        """Leave, and return whether the error is nothing but our own cancellation."""
        self._is_inside = False
        if self._timer is not None:
            self._timer.cancel()
        if not self._has_cancelled or self._task is None or self._task is not asyncio.current_task():
            return False
        self._has_cancelled = False
        return self._task.uncancel() <= self._cancels_before and isinstance(error, asyncio.CancelledError)

    def _look(self) -> None:
        if self._hold.is_over:
            return  # The body has given it back, and goes on.
        if self._hold.lost:
            self._cancel()
        elif self._hold.lease_s is not None:
            self._timer = self._loop.call_later(max(self._hold.trusted_for_s, 0.001), self._look)

    def _where(self) -> str:
        """Where the task waits, or is, at this moment."""
        stack = io.StringIO()
        if self._task is not None:
            self._task.print_stack(file=stack)
        return stack.getvalue()

    def _interrupt(self) -> None:
        """Cancel, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            return  # The loop is closed, and the body ended with it.

    def _cancel(self) -> None:
        if self._is_inside and not self._has_cancelled and self._task is not None:
            self._has_cancelled = True
            self._task.cancel()


class _Thread(threading.local):
    """A key for each thread: `threading.get_ident()` is given again to another thread when one ends."""

    def __init__(self) -> None:
        self.key = object()


_thread = _Thread()


class Body:
    """The rest of the running thread, until it leaves: `lost` and `check()` tell it, nothing interrupts it."""

    def __init__(self, hold: Hold) -> None:
        """Nothing is needed: a thread cannot be cancelled."""

    @staticmethod
    def current() -> object:
        """What tells the running body from others: its thread, which has nothing in common with one that ended."""
        return _thread.key

    def leave(self, error: BaseException | None) -> bool:
        """Leave; no error is of our making."""
        del error
        return False


class Entered:
    """The contexts that one handle has entered and not left yet, in the order of entering.

    Mostly the thread or task that entered leaves, but a fixture, a request or an exit stack may be left by another one.
    """

    def __init__(self) -> None:
        # Each change to it is one step of the interpreter. The handles for threads and for tasks share it.
        self._all: list[tuple[object, Any]] = []

    def add(self, body: object, context: object) -> None:
        """Remember a context, and which body entered it."""
        self._all.append((body, context))

    def forget(self, context: object) -> None:
        """Remember it no longer."""
        self._all[:] = [entry for entry in self._all if entry[1] is not context]

    def left_by(self, body: object, kind: type[C]) -> C | None:
        """The context that this body leaves: the last one it entered, else the oldest that is lost, else the oldest; None without any."""
        inside = [entry for entry in self._all if isinstance(entry[1], kind)]
        own: list[C] = [context for entered_by, context in inside if entered_by == body]
        if own:
            return own[-1]
        # A handle is inside once at a time, unless one was lost: what is still held may be another body's, so the lost one goes first.
        others: list[C] = sorted((context for _, context in inside), key=lambda context: not context.is_lost)
        return others[0] if others else None
