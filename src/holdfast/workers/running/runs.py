"""One execution of a job, and the inbox where executions report."""

import math
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from holdfast.holding.hold import Hold
from holdfast.records import Message, Receipt
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.running.wakeup import Bell

if TYPE_CHECKING:
    from holdfast.workers.handlers.handler import Performance
    from holdfast.workers.orders import Options
    from holdfast.workers.running.placement import Batch
    from holdfast.workers.running.running_jobs import Crew


class Run:
    """A claimed message on its way through a handler."""

    __slots__ = (
        "_end",
        "_turn",
        "batch",
        "began_at",
        "crew",
        "ended_at",
        "handle",
        "has_reported",
        "hold",
        "is_careful",
        "is_unknown",
        "job",
        "keeps_trace",
        "ledger_key",
        "message",
        "options",
        "performance",
        "receipt",
        "reported_at",
    )

    message: Message
    hold: Hold
    job: JobContext
    options: "Options"
    """How the jobs of its function are run."""
    performance: "Performance"
    crew: "Crew"
    """Who is told how it ends."""
    is_unknown: bool
    """Whether an earlier execution died, and it is not known how far it came."""
    has_reported: bool

    def __init__(
        self, message: Message, hold: Hold, job: JobContext, options: "Options", *, performance: "Performance", crew: "Crew"
    ) -> None:
        self.message = message
        self.crew = crew
        self.options = options
        self.performance = performance
        self.receipt: Receipt = hold.name  # type: ignore[assignment] # it holds a claim
        self.hold = hold
        self.job = job
        self.began_at: float | None = None
        self.ended_at: float | None = None
        self.batch: Batch | None = None
        """The jobs that one call takes together with it."""
        self.handle: Any = None
        """What runs it: a thread, a task, a process."""
        self.ledger_key: str | None = None
        """What its effects are remembered under, if they must happen once."""
        self.is_unknown = False
        self.has_reported = False
        self.reported_at: float = -math.inf
        self.is_careful: bool = False
        """Whether a limit or a rate counts it: then it is said if it was never begun."""
        self.keeps_trace: bool = False
        """Whether the store keeps where it failed."""
        # Each is taken by whoever comes first, in one step of the interpreter.
        self._turn = [None]
        self._end = [None]

    def may_begin(self) -> bool:
        """Whether it is yours: True for the first who asks, to run it or to give it back before it is run."""
        return _is_first(self._turn)

    @property
    def has_begun(self) -> bool:
        """Whether it is being run, or was given back."""
        return not self._turn

    def may_end(self) -> bool:
        """Whether it is for you to say how it ended: for the first who asks, be it who ran it or who waits for that no longer."""
        return _is_first(self._end)

    @property
    def has_ended(self) -> bool:
        """Whether it was reported how it ended; what its handler does from then on is of no interest."""
        return not self._end


def _is_first(left: list[None]) -> bool:
    try:
        left.pop()
    except IndexError:
        return False
    return True


DONE, FAILED = ("done", "settled"), ("failed", "buried")
"""The outcomes by which a run has succeeded, and those by which it has failed."""

REPORT_S = 0.2
"""How far apart the reports of a run are written at least."""

Finished = tuple[Run, Outcome]


class Desk:
    """Where executions say, from any thread, how they ended and how far they are."""

    def __init__(self, bell: Bell, now: Callable[[], float]) -> None:
        self._bell = bell
        self._now = now
        self._finished: deque[Finished] = deque()
        self._progress: dict[Run, Raw] = {}

    def finish(self, run: Run, outcome: Outcome) -> None:
        """Say how a run ended, once."""
        run.ended_at = self._now()
        self._finished.append((run, outcome))
        self._bell.ring()

    def report(self, run: Run, progress: Raw) -> None:
        """Say how far a run is; only the last word counts."""
        is_new = run not in self._progress
        self._progress[run] = progress
        if is_new:
            self._bell.ring()

    def take(self, most: int) -> list[Finished]:
        """What ended since the last time, the oldest first."""
        finished: list[Finished] = []
        while self._finished and len(finished) < most:
            finished.append(self._finished.popleft())
        return finished

    def take_progress(self) -> dict[Run, Raw]:
        """The newest reports since the last time."""
        if not self._progress:
            return {}
        progress, now = {}, time.monotonic()
        for run in list(self._progress):
            if run.reported_at + REPORT_S <= now:
                progress[run], run.reported_at = self._progress.pop(run), now
        return progress

    def progress_in_s(self) -> float | None:
        """When the next report is to be written; None if there is none."""
        if not self._progress:
            return None
        return max(0.0, min(run.reported_at for run in list(self._progress)) + REPORT_S - time.monotonic())

    @property
    def is_empty(self) -> bool:
        """Whether nothing has ended."""
        return not self._finished
