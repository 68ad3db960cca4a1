"""A handler: the user's function, how to call it, and how its end is interpreted."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from types import CoroutineType
from typing import Any, NoReturn

from msgspec import Struct

from holdfast.codec import JSON, Codec, Limits
from holdfast.records import Message
from holdfast.results import MISSING
from holdfast.telemetry.tracing import is_traced, working_on
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.handlers.jobs import JobContext, running
from holdfast.workers.handlers.judgement import Judge, judged
from holdfast.workers.handlers.outcomes import DONE, SETTLED, UNKNOWN_FOR_S, Outcome
from holdfast.workers.handlers.resources import Around, Resource, Resources, enter_around, enter_around_async
from holdfast.workers.handlers.signatures import check_callable, wants_job
from holdfast.workers.once_record import kept_result
from holdfast.workers.steps.access import StepSetting
from holdfast.workers.steps.rows import parent_in

FAILURES = frozenset({"failed", "buried"})


class Handler:
    """The function that does the work of one job, sync or async; it takes the value and, if it has another parameter `job`, the job."""

    codec: Codec
    """How the values of its jobs are encoded."""

    def __init__(self, function: Callable[..., Any], codec: Codec | None = None) -> None:
        check_callable(function, "a handler must be a function of one value")
        self.function = function
        self.given_codec = codec
        self.codec = JSON if codec is None else codec
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - asked of an object with a method __call__
        self.takes_job: bool = wants_job(function)

    def job(self, message: Message, setting: StepSetting | None, started: float) -> JobContext:
        """What the function is given of a job."""
        kind = AsyncJobContext if self.is_async else JobContext
        return kind(message, self.codec, setting, started)

    @property
    def name(self) -> str:
        """What people call it."""
        return getattr(self.function, "__qualname__", type(self.function).__qualname__)

    def __call__(self, job: JobContext) -> Any:
        """Call the function; the answer of an async one is awaitable."""
        return self.function(job.value, job=job) if self.takes_job else self.function(job.value)

    @property
    def uses(self) -> Mapping[str, Resource]:
        """The parameters that are given by a factory."""
        return {}

    def call(self, job: JobContext, given: Mapping[str, Any]) -> Any:  # noqa: ARG002 - it has no such parameters
        """Call the function with what factories give, too."""
        return self(job)

    def beside(self, function: Callable[..., Any]) -> "Handler":
        """A handler of another function that is called like this one."""
        return Handler(function)

    def keyed(self, function: Callable[..., Any], job: JobContext) -> Any:
        """What a function says about the values of a job."""
        return function(job.value)


class Rules(Struct):
    """What the ending of a handler means: kept wherever handlers run."""

    keeps_results: bool = False
    codec: Codec = JSON
    limits: Limits = Limits()
    judge: Judge | None = None
    reconcile: Callable[..., Any] | None = None
    around: tuple[Around, ...] = ()
    """What is done around each job."""
    unknown_for_s: float | None = UNKNOWN_FOR_S


class Performance:
    """A handler with its rules: runs one job, and returns how that ended. It raises nothing."""

    def __init__(self, handler: Handler, rules: Rules, resources: Resources | None = None) -> None:
        self.handler = handler
        self.rules = rules
        self._resources = resources or Resources()
        self._is_plain = not rules.around and not handler.uses and not self._resources.has_around
        self._reconcile = None if rules.reconcile is None else handler.beside(rules.reconcile)

    def run(self, job: JobContext, *, unknown: bool = False) -> Outcome:
        """Run a job in this thread."""
        if not is_traced():
            return self._run_here(job, unknown=unknown)
        with working_on(job.queue, job.id, job.message.metadata) as failed:
            outcome = self._run_here(job, unknown=unknown)
            if outcome.how in FAILURES:
                failed()
            return outcome

    def _run_here(self, job: JobContext, *, unknown: bool) -> Outcome:
        token = running.set(job)
        try:
            return self._run(job, unknown=unknown)
        finally:
            running.reset(token)

    def _run(self, job: JobContext, *, unknown: bool) -> Outcome:
        try:
            job.begin(takes_job=self.handler.takes_job)  # It may have been cancelled before it began.
            result = MISSING if not unknown or self._reconcile is None else self._reconcile(job)
            if result is MISSING:
                result = self.handler(job) if self._is_plain else self._call(job)
            if isinstance(result, CoroutineType):
                self._refuse(result)
            if job.durable.is_settled:
                return SETTLED
            outcome = self.succeeded(result, job)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises ends its job, not its worker
            outcome = self.judged(error, job)
        try:
            return job.ended(outcome)
        except BaseException as error:  # noqa: BLE001 - as above
            return self.judged(error, job)

    async def run_async(self, job: AsyncJobContext, *, unknown: bool = False) -> Outcome:
        """Run a job in this task."""
        if not is_traced():
            return await self._run_here_async(job, unknown=unknown)
        with working_on(job.queue, job.id, job.message.metadata) as failed:
            outcome = await self._run_here_async(job, unknown=unknown)
            if outcome.how in FAILURES:
                failed()
            return outcome

    async def _run_here_async(self, job: AsyncJobContext, *, unknown: bool) -> Outcome:
        token = running.set(job)
        try:
            return await self._run_async(job, unknown=unknown)
        finally:
            running.reset(token)

    def _refuse(self, coroutine: Any) -> NoReturn:
        """Let a job fail whose sync function returned a coroutine, of which nothing was run."""
        coroutine.close()
        raise TypeError(
            f"{self.handler.name} is not async and returned a coroutine that was not awaited: declare it with async def, "
            "also where a decorator wraps it"
        )

    async def _run_async(self, job: AsyncJobContext, *, unknown: bool) -> Outcome:
        try:
            await job.begin_async(takes_job=self.handler.takes_job)
            result = MISSING if not unknown or self._reconcile is None else await _awaited(self._reconcile(job))
            if result is MISSING:
                result = await self.handler(job) if self._is_plain else await self._call_async(job)
            if job.durable.is_settled:
                return SETTLED
            job.refuse_unawaited()
            outcome = self.succeeded(result, job)
        except BaseException as error:  # noqa: BLE001 - as above
            outcome = self.judged(error, job)
        try:
            return await job.ended_async(outcome)
        except BaseException as error:  # noqa: BLE001 - as above
            return self.judged(error, job)

    def _call(self, job: JobContext) -> Any:
        """Call the function with what it is given, and with what is around it."""
        with ExitStack() as stack:
            given = self._resources.enter(stack, self.handler.uses)
            enter_around(stack, self.rules.around, job)
            return self.handler.call(job, given)

    async def _call_async(self, job: JobContext) -> Any:
        async with AsyncExitStack() as stack:
            given = await self._resources.enter_async(stack, self.handler.uses)
            await enter_around_async(stack, self.rules.around, job)
            return await self.handler.call(job, given)

    def succeeded(self, result: Any, job: JobContext) -> Outcome:
        """It is done, whether or not its result can be kept: what ran must not run again for that."""
        if not self.rules.keeps_results and parent_in(job.message.metadata) is None:
            return DONE
        return Outcome("done", *kept_result(job.message, result, self.rules.codec, self.rules.limits))

    def judged(self, error: BaseException, job: JobContext) -> Outcome:
        """What it means that a handler raised this."""
        return judged(error, job, self.rules.judge, self.rules.unknown_for_s)


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
