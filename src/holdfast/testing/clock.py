"""A clock that a test moves; waiters check it again when it moves."""

import threading
from collections.abc import Callable

from holdfast.records import moment_in

START_US = 1_700_000_000_000_000


class FakeClock:
    """Store time that stands still until a test moves it; any store takes one as its `clock`.

    Whatever happens at one moment stands in the order in which it was put: advance the clock between a put and a release to see the
    released message go to the back.
    """

    def __init__(self, start_us: int = START_US, wall_offset_us: int = 0) -> None:
        self._lock = threading.Lock()  # Guards the three below.
        self._now_us = start_us
        self._wall_offset_us = wall_offset_us
        self._callbacks: list[Callable[[], None]] = []

    def now_us(self) -> int:
        return self._now_us

    def now_ns(self) -> int:
        return 1000 * self.now_us()

    def wall_offset_us(self) -> int:
        """What the wall clock shows beyond store time."""
        return self._wall_offset_us

    def wall_us(self) -> int:
        """What the wall clock shows."""
        with self._lock:
            return self._now_us + self._wall_offset_us

    def advance(self, seconds: float) -> None:
        """Let time pass, on the wall clock too, and let everyone who waits look at the clock again."""
        if seconds < 0:
            raise ValueError(f"store time never goes back, and {seconds} s were asked for: step_wall moves the wall clock alone")
        with self._lock:
            self._now_us += moment_in(seconds)
        self._tell()

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or with a negative number back, as an administrator might; store time stays."""
        with self._lock:
            self._wall_offset_us += moment_in(seconds)
        self._tell()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after each move; answer how to end that."""
        with self._lock:
            self._callbacks.append(callback)
        return lambda: self._unsubscribe(callback)

    def _unsubscribe(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _tell(self) -> None:
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()
