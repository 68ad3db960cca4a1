"""Group commit: the first of several concurrent callers commits for all.

A caller who finds no one at work leads: it runs its own commands and whatever others have queued meanwhile in one transaction, answers
them after the commit, and hands the lead to the next in line. A lone caller never waits for anyone.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from holdfast.commands import Command
from holdfast.commands.request import NOBODY, Request, execute_in_time
from holdfast.errors import HoldfastError, StoreError, StoreUnavailable, TookTooLong

R = TypeVar("R")

MOST = 512
"""How many commands one transaction carries at most."""

GATHER_S = 0.0004
"""How long a leader lets those it saw at work a moment ago catch up, so that they share its commit."""


class Job:
    """One command on its way, and what became of it."""

    __slots__ = ("answer", "command", "error", "is_done", "request")

    def __init__(self, command: Command[Any], request: Request = NOBODY) -> None:
        self.command: Command[Any] = command
        self.request: Request = request
        self.answer: Any = None
        self.error: BaseException | None = None
        self.is_done: bool = False

    def carry_out(self, execute: Callable[[Command[Any]], Any]) -> Any:
        """What the command returns, in the time that it has."""
        # A program of its own has all the time, and would pay for it with every command.
        return execute(self.command) if self.request is NOBODY else execute_in_time(self.request, execute, self.command)

    def succeed(self, answer: object) -> None:
        self.answer, self.is_done = answer, True

    def fail(self, error: BaseException) -> None:
        self.error, self.is_done = error, True

    def undo(self) -> "list[Job]":
        """What takes it back, if it succeeded and that leaves something to look after."""
        return [Job(undo) for undo in self.command.undo(self.answer)] if self.is_done and self.error is None else []

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


def read_each(jobs: list[Job], read: Callable[[Command[Any]], Any]) -> None:
    """Answer jobs that only read, which takes no commit and no turn."""
    for job in jobs:
        try:
            job.succeed(job.carry_out(read))
        except Exception as error:  # noqa: BLE001 - whatever it is, the job's caller must have it
            job.fail(error)


class Attempting(Protocol):
    """A transaction that counts the events it wrote."""

    appended: int

    def execute(self, command: Command[Any]) -> Any: ...


def attempt(tx: Attempting, job: Job) -> None:
    """Work out the job's answer, or its refusal: raised before anything was written, so the others of the batch may go on."""
    before = tx.appended
    try:
        job.answer, job.error = job.carry_out(tx.execute), None
    except TookTooLong as error:
        job.fail(error)  # It is not tried again, and what it wrote is rolled back.
        raise
    except HoldfastError as error:
        if isinstance(error, StoreError | StoreUnavailable) or tx.appended != before:
            raise
        job.error = error


def call_done(jobs: list[Job]) -> None:
    """Say that what the jobs did is committed."""
    for job in jobs:
        job.is_done = True


def fail_all(jobs: list[Job], error: Exception) -> dict[str, int]:
    """Everyone gets the error, and no one a hint."""
    for job in jobs:
        job.fail(error)
    return {}


class Committer:
    """Lets threads share transactions. `run_batch` must leave every job done, or raise with none of those left applied.

    A Ctrl-C may cut any of this short, and then no lead and no job may be dropped: so every step can be repeated, and `run` does.
    """

    def __init__(self, run_batch: Callable[[list[Job]], None]) -> None:
        self._run_batch = run_batch
        # Guards _leader, _waiting and _company.
        self._mutex = threading.Lock()
        self._leader: _Ticket | None = None
        self._waiting: deque[_Ticket] = deque()
        self._company = 0

    def execute(self, command: Command[R]) -> R:
        job = Job(command)
        try:
            self.run([job])
            answer: R = job.result()
        except BaseException:
            # Interrupted after its work was done: nobody will look after what it got.
            if undo := job.undo():
                self.run(undo)
            raise
        return answer

    def run(self, jobs: list[Job]) -> None:
        """Have all of these done, in one transaction among themselves unless one of them fails it."""
        ticket = _Ticket(jobs)
        try:
            try:
                with self._mutex:
                    is_leader = self._leader is None
                    if is_leader:
                        self._leader = ticket
                if is_leader or self._comes_to_lead(ticket):
                    self._run_batch(self._gather(ticket) if self._company > 1 or self._waiting else jobs)
            finally:
                self._leave(ticket)
        finally:
            if not ticket.has_left:  # The first was cut short.
                self._leave(ticket)

    def _comes_to_lead(self, ticket: "_Ticket") -> bool:
        """Lead immediately where no one does; else wait until the lead comes, or the jobs are done."""
        with self._mutex:
            if self._leader is None:
                self._leader = ticket
                return True
            ticket.bell = bell = _shut()
            self._waiting.append(ticket)
        while True:
            bell.acquire()
            if ticket.has_left:
                return False
            with self._mutex:
                if self._leader is ticket:
                    return True

    def _gather(self, leader: "_Ticket") -> list[Job]:
        """The leader's jobs and those that wait, after those who shared the last commit had a moment to come back."""
        deadline = time.monotonic() + GATHER_S
        while len(self._waiting) + 1 < self._company and time.monotonic() < deadline:
            time.sleep(0)
        jobs = list(leader.jobs)
        with self._mutex:
            while self._waiting and len(jobs) < MOST:
                ticket = self._waiting[0]
                if ticket is not leader:
                    ticket.is_taken = True
                    leader.taken = (*leader.taken, ticket)
                    jobs += ticket.jobs
                self._waiting.popleft()
            self._company = len(leader.taken) + 1
        return jobs

    def _leave(self, ticket: "_Ticket") -> None:
        """Let go of what the ticket has, be it the lead or a place in the line; while its jobs are in another's hands, wait."""
        if ticket.has_left:
            return
        if self._leader is ticket and not ticket.taken and self._leave_nobody(ticket):
            return
        for taken in ticket.taken:
            if all(job.is_done for job in taken.jobs):
                taken.has_left = True
                taken.ring()
        while not self._let_go(ticket):
            ticket.wait()
        ticket.has_left = True

    def _leave_nobody(self, ticket: "_Ticket") -> bool:
        """What a lone caller does: leave without an heir."""
        with self._mutex:
            if self._waiting:
                return False
            self._leader = None
            ticket.has_left = True
            return True

    def _let_go(self, ticket: "_Ticket") -> bool:
        with self._mutex:
            if self._leader is not ticket:
                if ticket not in self._waiting:
                    return ticket.has_left or not ticket.is_taken
                self._waiting.remove(ticket)
            elif self._waiting or ticket.taken:
                self._hand_over(ticket)
            else:
                self._leader = None
            return True

    def _hand_over(self, leader: "_Ticket") -> None:
        """Put back those whose jobs are not done, and let the next in line lead."""
        back = [ticket for ticket in leader.taken if not ticket.has_left and ticket not in self._waiting]
        self._waiting.extendleft(reversed(back))
        heir = self._waiting[0] if self._waiting else None
        if heir is not None:
            heir.ring()  # It looks around once we leave the mutex.
        self._leader = heir
        if heir is not None:
            self._waiting.popleft()


class _Ticket:
    """A caller with its jobs: who leads, who waits for the lead, or whose jobs a leader has taken."""

    __slots__ = ("bell", "has_left", "is_taken", "jobs", "taken")

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.taken: tuple[_Ticket, ...] = ()
        self.is_taken = False
        self.has_left = False
        self.bell: threading.Lock | None = None

    def ring(self) -> None:
        if self.bell is not None and self.bell.locked():
            self.bell.release()

    def wait(self) -> None:
        if self.bell is not None:
            self.bell.acquire()


def _shut() -> threading.Lock:
    """Make a lock to sleep on: it opens when another thread releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock
