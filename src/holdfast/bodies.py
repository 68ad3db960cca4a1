"""What runs inside a context: a task's body is cancelled when what it holds is lost, a thread's can only look."""

import asyncio
import io
import threading

from holdfast.holding import Hold


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
        """Leave, and answer whether the error is nothing but our own cancellation."""
        self._is_inside = False
        if self._timer is not None:
            self._timer.cancel()
        if not self._has_cancelled or self._task is None:
            return False
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


class Body:
    """The rest of the running thread, until it leaves: `lost` and `check()` tell it, nothing interrupts it."""

    def __init__(self, hold: Hold) -> None:
        """Nothing is needed: a thread cannot be cancelled."""

    @staticmethod
    def current() -> object:
        """What tells the running body from others: its thread."""
        return threading.get_ident()

    def leave(self, error: BaseException | None) -> bool:
        """Leave; no error is of our making."""
        del error
        return False
