"""The one thread a worker that notices when a job has run for too long."""

import threading
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any

from holdfast.stores.waiting import LONGEST_NAP_S, MovableClock
from holdfast.workers.runs import Run

Tell = Callable[[Run], object]


class Timekeeper:
    """Tells of runs that are over their soft or their hard limit, once each; independent of the store, which may hang."""

    def __init__(self, now: Callable[[], float], clock: Any, soft: tuple[float | None, Tell], hard: tuple[float | None, Tell]) -> None:
        self._now = now
        self._limits = [(limit_s, tell, deque[Run]()) for limit_s, tell in (soft, hard) if limit_s is not None]
        # Guards the lines above, which are in order of beginning, and the two below.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._forget_clock: Callable[[], object] | None = None
        if self._limits and isinstance(clock, MovableClock):
            self._forget_clock = clock.subscribe(self._look_again)  # type: ignore[assignment] # a test's clock answers how to end it

    def began(self, run: Run) -> None:
        """Watch a run from now on."""
        run.began_at = self._now()
        if not self._limits:
            return
        with self._changed:
            for _, _, line in self._limits:
                line.append(run)
            if self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._work, name="holdfast-limits", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Watch nothing any more."""
        if self._forget_clock is not None:
            self._forget_clock()
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _look_again(self) -> None:
        with self._changed:
            self._changed.notify()

    def _work(self) -> None:
        while (late := self._next()) is not None:
            for tell, run in late:
                if not run.is_over:
                    tell(run)

    def _next(self) -> list[tuple[Tell, Run]] | None:
        """Sleep until runs are over a limit, and answer them; None at the end."""
        with self._changed:
            while not self._is_over:
                now, late, next_at = self._now(), [], inf
                for limit_s, tell, line in self._limits:
                    while line and (line[0].is_over or _began(line[0]) + limit_s <= now):
                        late.append((tell, line.popleft()))
                    if line:
                        next_at = min(next_at, _began(line[0]) + limit_s)
                if late:
                    return late
                self._changed.wait(None if next_at == inf or self._forget_clock else min(next_at - now, LONGEST_NAP_S))
        return None


def _began(run: Run) -> float:
    return run.began_at or 0.0
