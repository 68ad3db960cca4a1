"""Functions that take several jobs in one call."""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Any, ClassVar, Union, get_args, get_origin

from msgspec import Struct

from holdfast.codec.fields import Field, Seconds, Whole, check_fields
from holdfast.telemetry.tracing import is_traced, working_on
from holdfast.wording import counted
from holdfast.workers.handlers.arguments import Arguments, TaskHandler, hints_of
from holdfast.workers.handlers.handler import Performance
from holdfast.workers.handlers.jobs import JobContext, StopReason
from holdfast.workers.handlers.outcomes import DONE, BatchFailed, Outcome
from holdfast.workers.handlers.resources import enter_around, enter_around_async

SIZE_MOST = 10_000
"""How many jobs one call takes at most."""


class BatchTerms(Struct, frozen=True):
    """How many jobs one call takes, and how long it waits for them."""

    checked: ClassVar[tuple[Field, ...]] = (Whole("size", 1, SIZE_MOST), Seconds("within_s"))

    size: int = 100
    within_s: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self, self.checked)


class BatchArguments(Arguments):
    """The one argument of each job of a batch: an element of the list that the function takes."""

    def __init__(self, function: Callable[..., Any], codec: Any = None) -> None:
        super().__init__(function, codec)
        if self.takes_job or len(self.parameters) != 1 or self.optional:
            raise TypeError(
                f"{self.name} must take one list, as in def {self.name}(values: list[str]): each job of a batch gives it one element"
            )

    def read_hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        return {name: _element(hint) for name, hint in hints_of(function).items()}


class BatchHandler(TaskHandler):
    """The function of a batch: called with the list of what each job has."""

    arguments_type: type[Arguments] = BatchArguments

    def call_all(self, values: list[dict[str, Any]], given: Mapping[str, Any]) -> Any:
        """Call the function with the values of these jobs, in order, and with what factories give."""
        (parameter,) = self.codec.parameters
        return self.function(**{parameter: [value[parameter] for value in values]}, **given)


class BatchJob:
    """The jobs of one call, and how each ended."""

    def __init__(self, jobs: list[JobContext]) -> None:
        self.jobs: list[JobContext] = jobs
        self.outcomes: list[Outcome | None] = [None] * len(jobs)
        self.stop_reason: StopReason | None = None


class BatchPerformance(Performance):
    """A function of a batch with its rules: runs the jobs of one call, and notes how each ended. It raises nothing."""

    handler: BatchHandler

    def run(self, job: Any, *, unknown: bool = False) -> Outcome:
        del unknown
        chosen, values = self._read(job)
        if not chosen:
            return DONE
        with _span(job.jobs[0]):
            try:
                with ExitStack() as stack:
                    given = self._resources.enter(stack, self.handler.uses)
                    for number in chosen:
                        enter_around(stack, self.rules.around, job.jobs[number])
                    results = self.handler.call_all(values, given)
                self._divide(job, chosen, results)
            except BaseException as error:  # noqa: BLE001 - whatever a handler raises ends its jobs, not its worker
                self._fail(job, chosen, error)
        return DONE

    async def run_async(self, job: Any, *, unknown: bool = False) -> Outcome:
        del unknown
        chosen, values = self._read(job)
        if not chosen:
            return DONE
        with _span(job.jobs[0]):
            try:
                async with AsyncExitStack() as stack:
                    given = await self._resources.enter_async(stack, self.handler.uses)
                    for number in chosen:
                        await enter_around_async(stack, self.rules.around, job.jobs[number])
                    results = await self.handler.call_all(values, given)
                self._divide(job, chosen, results)
            except BaseException as error:  # noqa: BLE001 - as above
                self._fail(job, chosen, error)
        return DONE

    def _read(self, batch: BatchJob) -> tuple[list[int], list[dict[str, Any]]]:
        """The places of the jobs that take part, and their values; the others have ended."""
        chosen, values = [], []
        for number, job in enumerate(batch.jobs):
            try:
                job.check()  # It may have been cancelled before it began.
                values.append(job.value)
            except BaseException as error:  # noqa: BLE001 - as above
                batch.outcomes[number] = self.judged(error, job)
            else:
                chosen.append(number)
        return chosen, values

    def _divide(self, batch: BatchJob, chosen: list[int], results: Any) -> None:
        """Give each job its result."""
        if results is not None and not (isinstance(results, list | tuple) and len(results) == len(chosen)):
            what = counted(len(results), "result") if isinstance(results, list | tuple) else f"a value of type {type(results).__name__}"
            raise TypeError(
                f"{self.handler.name} returned {what} for {counted(len(chosen), 'job')}: return a list with one result for each, or None"
            )
        for place, number in enumerate(chosen):
            batch.outcomes[number] = self.succeeded(None if results is None else results[place], batch.jobs[number])

    def _fail(self, batch: BatchJob, chosen: list[int], error: BaseException) -> None:
        """Give each job what the call raised, or what it raised for this one."""
        if isinstance(error, BatchFailed) and not error.failed.keys() <= set(range(len(chosen))):
            wrong = ValueError(
                f"BatchFailed names places {sorted(error.failed, key=str)}, and the batch has {counted(len(chosen), 'job')}, from 0 on"
            )
            wrong.__context__, error = error, wrong
        for place, number in enumerate(chosen):
            job = batch.jobs[number]
            if not isinstance(error, BatchFailed):
                batch.outcomes[number] = self.judged(error, job)
            elif place in error.failed:
                batch.outcomes[number] = self.judged(error.failed[place], job)
            else:
                batch.outcomes[number] = self.succeeded(None if error.results is None else error.results[place], job)


@contextmanager
def _span(job: JobContext) -> Iterator[None]:
    """A span for the call, in the trace of its first job."""
    if not is_traced():
        yield
        return
    with working_on(job.queue, job.id, job.message.metadata):
        yield


def _element(hint: Any) -> Any:
    """The type of the elements of a list, also of one that may be None; of anything else the type itself."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [one for one in get_args(hint) if one is not type(None)] or [hint]
    return get_args(hint)[0] if get_origin(hint) in (list, tuple, Sequence) and get_args(hint) else Any if hint is list else hint
