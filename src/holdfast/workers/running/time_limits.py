"""The thread of a worker that enforces time limits."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from math import inf

from holdfast.clock import MovableClock
from holdfast.stores.waiting.waiters import LONGEST_NAP_S
from holdfast.workers.running.runs import Run

Tell = Callable[[Run], object]


class Timekeeper:
    """Reports runs that are over their soft or their hard limit, once each; independent of the store, which may hang."""

    def __init__(self, now: Callable[[], float], clock: MovableClock | None, soft: Tell, hard: Tell) -> None:
        self._now = now
        self._tells = soft, hard
        # Guards the three below: the first has, for each limit and whom it is told, runs by when they began.
        self._changed = threading.Condition()
        self._lines: dict[tuple[float, Tell], OrderedDict[Run, float]] = {}
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._forget_clock = clock.subscribe(self._look_again) if clock is not None else None

    def began(self, run: Run) -> None:
        """Watch a run from now on."""
        run.began_at = self._now()
        options = run.options
        if options.soft_limit_s is None and options.hard_limit_s is None:
            return
        limits = self._limits(run)
        with self._changed:
            for limit in limits:
                line = self._lines.setdefault(limit, OrderedDict())
                if not line:  # Those behind the first are late after it.
                    self._changed.notify()
                line[run] = run.began_at
            if self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._work, name="holdfast-limits", daemon=True)
                self._thread.start()

    def ended(self, run: Run) -> None:
        """Watch a run no longer."""
        options = run.options
        if options.soft_limit_s is None and options.hard_limit_s is None:
            return
        limits = self._limits(run)
        with self._changed:
            for limit in limits:
                if (line := self._lines.get(limit)) is not None:
                    line.pop(run, None)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._forget_clock is not None:
            self._forget_clock()
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _limits(self, run: Run) -> list[tuple[float, Tell]]:
        options, (soft, hard) = run.options, self._tells
        return [(limit_s, tell) for limit_s, tell in ((options.soft_limit_s, soft), (options.hard_limit_s, hard)) if limit_s is not None]

    def _look_again(self) -> None:
        with self._changed:
            self._changed.notify()

    def _work(self) -> None:
        while (late := self._next()) is not None:
            for tell, run in late:
                tell(run)

    def _next(self) -> list[tuple[Tell, Run]] | None:
        """Sleep until runs are over a limit, and return them; None at the end."""
        with self._changed:
            while not self._is_over:
                late, due_at = self._look(self._now())
                if late:
                    return late
                self._changed.wait(None if due_at == inf or self._forget_clock else min(due_at - self._now(), LONGEST_NAP_S))
        return None

    def _look(self, now: float) -> tuple[list[tuple[Tell, Run]], float]:
        """Those over a limit, no longer in its line, and when the next will be."""
        late, due_at = [], inf
        for (limit_s, tell), line in self._lines.items():
            while line:
                began_at = next(iter(line.values()))
                if began_at + limit_s > now:
                    due_at = min(due_at, began_at + limit_s)
                    break
                late.append((tell, line.popitem(last=False)[0]))
        return late, due_at
