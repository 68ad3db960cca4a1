"""How many messages a worker claims beyond those it can begin at once."""

from collections import deque

from holdfast.workers.running.runs import Run

AHEAD_S = 0.05
"""How much work is held ahead at most, in seconds for each job that runs at once."""

WAIT_S = 0.1
"""After how long what was claimed ahead and could not begin is given back, for a worker that is free."""

MOST = 100
"""How many messages are held ahead at most."""

FORGET = 0.9
"""How much of the longest job of late still counts after the next one."""

CAREFUL_JOBS = 50
"""For how many jobs nothing is claimed ahead after a message that must not be."""


class Ahead:
    """Grows while jobs are short and there are more of them, so that one step of the store serves many; else nothing waits here.

    It doubles when jobs have ended and a claim finds as much as it asked for, and goes back to nothing when a job takes long: a message
    that waits here could run elsewhere. Told a fixed size, it keeps that.
    """

    size: int

    def __init__(self, fixed: int | None, concurrency: int) -> None:
        self.size = fixed or 0
        self._is_fixed = fixed is not None
        self._concurrency = concurrency
        self._longest_s = 0.0
        self._careful_for = 0
        self._has_ended = False
        self._line: deque[tuple[float, Run]] = deque()

    def ended(self, took_s: float) -> None:
        """A job took so long."""
        self._has_ended = True
        self._careful_for = max(0, self._careful_for - 1)
        self._longest_s = max(took_s, FORGET * self._longest_s)
        self._limit(self.size)

    def claimed(self, ahead: list[Run], now: float, *, is_all: bool) -> None:
        """These came now and cannot begin at once; `is_all` if the claim found as many messages as it asked for."""
        self._line.extend((now, run) for run in ahead)
        if not is_all:
            self._limit(self.size // 2)
        elif self._has_ended:
            self._has_ended = False
            self._limit(2 * self.size + 1)

    def be_careful(self) -> None:
        """Claim nothing ahead for a while."""
        if not self._is_fixed:
            self.size, self._careful_for = 0, CAREFUL_JOBS

    def _limit(self, size: int) -> None:
        if self._is_fixed:
            return
        if self._careful_for:
            self.size = 0
        elif self._longest_s * size > AHEAD_S * self._concurrency:
            self.size = int(AHEAD_S * self._concurrency / self._longest_s)
        else:
            self.size = min(size, MOST)

    def due_in_s(self, now: float) -> float | None:
        """In how many seconds what waits here is to be given back; None if nothing is."""
        while self._line and self._line[0][1].has_begun:
            self._line.popleft()
        return None if self._is_fixed or not self._line else self._line[0][0] + WAIT_S - now

    def withdraw(self) -> list[Run]:
        """Take out those that have not begun: they will not begin now."""
        line, self._line = self._line, deque()
        withdrawn = [run for _, run in line if run.may_begin()]
        if withdrawn:
            self.be_careful()
        return withdrawn
