"""The durable side of one run of a job: shared by every view of its context."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Raw

from holdfast.commands import Change, Item, Put, Write
from holdfast.errors import (
    ChildFailed,
    ClaimLost,
    ExecutionUnknown,
    HoldfastError,
    JobCancelled,
    JobTooLong,
    StepFailed,
    StepsChanged,
    StepTooLarge,
)
from holdfast.records import Message
from holdfast.workers.handlers.outcomes import LOST, RELEASED, How, Outcome
from holdfast.workers.steps._async.steps import AsyncSteps
from holdfast.workers.steps._sync.steps import Steps
from holdfast.workers.steps.access import StepSetting
from holdfast.workers.steps.history import History
from holdfast.workers.steps.rows import FOREVER_S
from holdfast.workers.steps.unawaited import Calls
from holdfast.workers.steps.waits import Suspended

if TYPE_CHECKING:
    from holdfast.workers.handlers.jobs import JobContext

AnySteps = Steps | AsyncSteps

FINAL = (StepsChanged, StepFailed, StepTooLarge, JobTooLong, ChildFailed, ExecutionUnknown)
"""What a durable job raises again each time that it is run."""


class Owner(Protocol):
    """Who runs a job, as far as the job asks."""

    def report(self, job: "JobContext", progress: Raw) -> None:
        """Pass on how far it is."""
        ...

    def settling(self, job: "JobContext", result: Any) -> list[Any]:
        """The commands that end it as done, in a step of its function's; from now on no renewal may take it for lost."""
        ...


class AtEnd:
    """What goes with the end of a run because its function said so."""

    def __init__(self) -> None:
        self.items: dict[str, list[Item]] = {}
        self.changes: dict[str, list[Change]] = {}
        self.commands: dict[How, list[Any]] = {}
        self.settling: list[Callable[[Any], list[Any]]] = []

    @property
    def writes(self) -> list[Any]:
        """What the function put and wrote, for when it is done."""
        puts = [Put(name, items) for name, items in self.items.items()]
        return [*puts, *(Write(name, changes) for name, changes in self.changes.items())]


class StepRun:
    """Why a run should stop, its steps if it has any, and what goes with its end."""

    # Every job has one: what most jobs never need stands here until it is set.
    steps: AnySteps | None = None
    stop_reason: Literal["cancelled", "time", "stopping", "lost"] | None = None
    owner: Owner | None = None
    is_settled: bool = False
    """Whether it was settled in a step of its function's."""
    has_ended: bool = False
    calls: Calls | None = None
    """What an async function has called of it."""
    _at_end: AtEnd | None = None
    _ending: tuple[How, list[Any]] | None = None

    def __init__(self, message: Message, setting: StepSetting | None, started: float) -> None:
        self._message = message
        self._setting = setting
        self._started = started

    @property
    def at_end(self) -> AtEnd:
        """What goes with the end of the run because its function said so."""
        if self._at_end is None:
            self._at_end = AtEnd()
        return self._at_end

    @property
    def setting(self) -> StepSetting:
        """What reaches the store."""
        if self._setting is None:
            raise HoldfastError("this job is not run by a worker, so its steps have no store: put it, and let a worker run it")
        return self._setting

    def history(self) -> History:
        """A new history of the job."""
        return History(self._message, self.setting, self._started)

    def is_to_load(self, *, takes_job: bool) -> bool:
        """Whether its history is read before it begins."""
        if self._setting is None or (not takes_job and self.stop_reason != "cancelled"):
            return False
        message = self._message
        return message.attempts > 1 or (message.metadata is not None and b'"dead_letter"' in bytes(message.metadata))

    def loaded(self) -> Raw | None:
        """Go on with what was read; returns the arguments of a job that began again."""
        history = None if self.steps is None else self.steps.history
        if history is None or not history.is_durable:
            return None
        if self.stop_reason == "cancelled":
            # It is told where it waits, and may undo what it did.
            self.stop_reason = None
            history.is_cancel_requested = not history.head.is_cancelled
        return history.head.args

    @property
    def version(self) -> Any:
        """The version of the code that the job began with."""
        if self.steps is not None:
            return self.steps.history.head.version
        return None if self._setting is None else self._setting.version

    def request_cancel(self) -> bool:
        """Let the handler of a durable job hear where it waits that it is to be cancelled; False if the job is not durable."""
        steps = self.steps
        if steps is None or not steps.history.is_durable:
            return False
        if not steps.history.head.is_cancelled:
            steps.turns.request_cancel()
        return True

    @property
    def is_durable(self) -> bool:
        """Whether something is recorded of it."""
        return self.steps is not None and self.steps.history.is_durable

    @property
    def is_cancelled(self) -> bool:
        """Whether a request to cancel it was delivered to its handler."""
        return self.steps is not None and self.steps.history.head.is_cancelled

    def ended_by(self, error: BaseException) -> Outcome | None:
        """How a run ended whose steps raised this; None if they have nothing to do with it."""
        if self.steps is None:
            return None
        if isinstance(error, ClaimLost) and self._message.receipt in error.lost:
            return LOST
        if self.steps.turns.suspended is not None and isinstance(error, Suspended | CancelledError):
            return RELEASED
        if isinstance(error, JobCancelled) and self.is_cancelled:
            return Outcome("cancelled", error=str(error))
        return None

    def is_final(self, error: BaseException) -> bool:
        """Whether every other run of a durable job would raise this, too."""
        return self.is_durable and isinstance(error, FINAL)

    def judged(self, outcome: Outcome) -> Outcome:
        """How the run ended, given how its function did."""
        steps = self.steps
        if steps is None:
            return outcome
        if steps.turns.suspended is not None and self.stop_reason is None and outcome.how != "lost":
            return self._sleeping(steps.history, steps.turns.suspended)
        if outcome.how == "done" and self.is_cancelled:
            return Outcome("cancelled", error="it was cancelled")
        return outcome

    def _sleeping(self, history: History, suspended: Suspended) -> Outcome:
        if suspended.anew is not None:
            dropping = [] if self.steps is None else self.steps.maps.dropping()
            self.end_with("suspended", [*history.beginning(suspended.anew), *dropping])
            return Outcome("suspended", delay_s=0.0)
        dues = [wait.due for wait in suspended.waits if wait.due is not None]
        delay_s = max(0.0, min(dues) - history.setting.now()) if dues else FOREVER_S
        self.end_with("suspended", history.suspension(suspended.waits))
        return Outcome("suspended", delay_s=delay_s)

    def removes(self, outcome: Outcome) -> bool:
        """Whether what is recorded of the job goes with its end."""
        return self.is_durable and outcome.how in ("done", "cancelled")

    def end_with(self, how: How, commands: Sequence[Any]) -> None:
        """Let these commands go with the end, if it is this one."""
        self._ending = (how, list(commands))

    def ending(self, how: How) -> list[Any]:
        """The commands that go with such an end."""
        if self._at_end is None and self._ending is None:
            return []
        own = [] if self._at_end is None else [*(self._at_end.writes if how == "done" else ()), *self._at_end.commands.get(how, ())]
        return [*own, *(self._ending[1] if self._ending is not None and self._ending[0] == how else ())]
