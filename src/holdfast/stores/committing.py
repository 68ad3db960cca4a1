"""Commits that concurrent callers share: the first of several commits for all.

A caller who finds nobody at work leads: it runs its own commands and whatever others have queued meanwhile in one transaction, answers
them after the commit, and hands the lead to the next in line. A lone caller never waits for anyone.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.commands import Command

R = TypeVar("R")

MOST = 512
"""How many commands one transaction carries at most."""

GATHER_S = 0.0002
"""How long a leader lets those it saw at work a moment ago catch up, so that they share its commit."""


class Job:
    """One command on its way, and what became of it."""

    __slots__ = ("answer", "command", "error", "is_done")

    def __init__(self, command: Command[Any]) -> None:
        self.command = command
        self.answer: Any = None
        self.error: BaseException | None = None
        self.is_done = False

    def succeed(self, answer: object) -> None:
        self.answer, self.is_done = answer, True

    def fail(self, error: BaseException) -> None:
        self.error, self.is_done = error, True

    def undo(self) -> Command[Any] | None:
        """What takes it back, if it succeeded and that leaves something to look after."""
        return self.command.undo(self.answer) if self.is_done and self.error is None else None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


class Committer:
    """Lets threads share transactions. `run_batch` must leave every job done, or raise with none of those left applied."""

    def __init__(self, run_batch: Callable[[list[Job]], None]) -> None:
        self._run_batch = run_batch
        # Guards _is_busy, _waiting and _company.
        self._mutex = threading.Lock()
        self._is_busy = False
        self._waiting: deque[_Ticket] = deque()
        self._company = 0

    def execute(self, command: Command[R]) -> R:
        job = Job(command)
        try:
            self.run([job])
        except BaseException:
            # Interrupted while another thread did the work: nobody will look after what it got.
            if (undo := job.undo()) is not None:
                self.run([Job(undo)])
            raise
        answer: R = job.result()
        return answer

    def run(self, jobs: list[Job]) -> None:
        """Have all of these done, in one transaction among themselves unless one of them fails it."""
        with self._mutex:
            ticket = _Ticket(jobs) if self._is_busy else None
            self._is_busy = True
            if ticket is not None:
                self._waiting.append(ticket)
        if ticket is not None:
            self._wait_for_turn(ticket)
            if ticket.is_served:
                return
        served: list[_Ticket] = []
        try:
            if self._company > 1 or self._waiting:
                served = self._gather(len(jobs))
            self._run_batch([*jobs, *[job for ticket in served for job in ticket.jobs]] if served else jobs)
        finally:
            self._hand_over(served)

    def _wait_for_turn(self, ticket: "_Ticket") -> None:
        try:
            ticket.bell.acquire()
        except BaseException:
            with self._mutex:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                    raise
            # Somebody has it in hand, or has just handed the lead to it: a lead must not be dropped.
            ticket.bell.acquire()
            if not ticket.is_served:
                self._hand_over([])
            raise

    def _gather(self, own: int) -> "list[_Ticket]":
        """Whoever waits now, after those who shared the last commit had a moment to come back."""
        deadline = time.monotonic() + GATHER_S
        while len(self._waiting) + 1 < self._company and time.monotonic() < deadline:
            time.sleep(0)
        served: list[_Ticket] = []
        with self._mutex:
            while self._waiting and own < MOST:
                served.append(self._waiting.popleft())
                own += len(served[-1].jobs)
            self._company = len(served) + 1
        return served

    def _hand_over(self, served: "Sequence[_Ticket]") -> None:
        """Answer those whose jobs are done, put the others back, and let the next in line lead."""
        if not served:
            with self._mutex:
                if not self._waiting:
                    self._is_busy = False
                    return
        done = [ticket for ticket in served if all(job.is_done for job in ticket.jobs)]
        with self._mutex:
            self._waiting.extendleft(ticket for ticket in reversed(served) if ticket not in done)
            heir = self._waiting.popleft() if self._waiting else None
            self._is_busy = heir is not None
        for ticket in done:
            ticket.is_served = True
            ticket.bell.release()
        if heir is not None:
            heir.bell.release()


class _Ticket:
    """A caller who waits for another to do its jobs, or for the lead."""

    __slots__ = ("bell", "is_served", "jobs")

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.is_served = False
        self.bell = threading.Lock()
        self.bell.acquire()
