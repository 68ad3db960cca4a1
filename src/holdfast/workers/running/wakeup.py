"""Wakes a worker for events other than the store's: a finished job, a report, a stop."""

import threading

from holdfast.stores.waiting.waiters import Mark


class Bell:
    """Ends the wait of the one who waits, from any thread; a ring before the wait is kept."""

    def __init__(self) -> None:
        # Guards the two below. Never held while anything else is done.
        self._lock = threading.Lock()
        self._mark: Mark | None = None
        self._has_rung = False

    @property
    def has_rung(self) -> bool:
        """Whether it has rung since it was cleared."""
        return self._has_rung

    def ring(self) -> None:
        """Wake the waiter, or the next one."""
        if self._has_rung:
            return  # Nobody waits, and whoever clears that looks at all there is.
        with self._lock:
            mark, self._mark = self._mark, None
            self._has_rung = True
        if mark is not None:
            mark.nudge()

    def clear(self) -> None:
        """Forget earlier rings: the caller looks now at all there is."""
        with self._lock:
            self._has_rung = False

    def listen(self, mark: Mark) -> bool:
        """Be woken on this mark from now on; False if it has rung since it was cleared."""
        with self._lock:
            self._mark = None if self._has_rung else mark
            return self._mark is not None

    def ignore(self) -> None:
        """Be woken no more."""
        with self._lock:
            self._mark = None
