"""The job that an async handler receives: its steps are awaited."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from holdfast.arguments.options import show_options
from holdfast.codec import check_duration, codec_for
from holdfast.errors import JobFailed
from holdfast.ids import new_id
from holdfast.stores.caller_transaction import AsyncConnection
from holdfast.workers.flows.nodes import OnFailure
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.steps._async.child import AsyncChild
from holdfast.workers.steps._async.flows import AsyncFlowRun
from holdfast.workers.steps._async.maps import raised
from holdfast.workers.steps._async.steps import AsyncSteps
from holdfast.workers.steps.called import CallableTask, check_task, map_calls
from holdfast.workers.steps.context import PLAIN, random_number, seconds_until, utc_now
from holdfast.workers.steps.options import StepCall
from holdfast.workers.steps.rows import check_step_name, hash_of
from holdfast.workers.steps.turns import AsyncTurns
from holdfast.workers.steps.unawaited import Calls, awaited
from holdfast.workers.steps.waits import Suspended

if TYPE_CHECKING:
    from holdfast.workers.calls import Call

P = ParamSpec("P")
T = TypeVar("T")


@show_options
class AsyncJobContext(JobContext):
    """One execution of a job, for an async handler: as `JobContext`, and its steps are awaited, several at a time if you like.

    `await asyncio.gather(job.step("a", …), job.step("b", …))` runs both; the order in which they end is not recorded, so no decision may
    depend on it. Outside of steps, await nothing but the methods of the job.
    """

    _task: "asyncio.Task[Any] | None" = None

    async def begin_async(self, *, takes_job: bool) -> None:
        """See `JobContext.begin`."""
        self._task = asyncio.current_task()
        if self.durable.is_to_load(takes_job=takes_job):
            await self._async_steps().load()
            self._loaded()
        self.check()

    async def ended_async(self, outcome: Outcome) -> Outcome:
        """See `JobContext.ended`."""
        durable = self.durable
        durable.has_ended = True
        if durable.calls is not None:
            durable.calls.forget()
        if durable.steps is None:
            return outcome
        outcome = durable.judged(outcome)
        if durable.removes(outcome):
            durable.end_with(outcome.how, await self._async_steps().deletion())
        return outcome

    @property
    def calls(self) -> Calls:
        """What this run has called of the job, to be awaited."""
        if self.durable.calls is None:
            self.durable.calls = Calls()
        return self.durable.calls

    def refuse_unawaited(self) -> None:
        """Raise TypeError if a step, or another call of the job, was not awaited."""
        if self.durable.calls is not None:
            self.durable.calls.refuse()

    @awaited
    async def done(self, result: Any = None, *, connection: AsyncConnection) -> None:  # type: ignore[override]
        """End the job now, in the transaction of a connection of yours to the same database: see `JobContext.done`."""
        if self.durable.is_durable:
            self.durable.end_with("done", await self._async_steps().deletion())
        await self.durable.setting.async_access.execute(self._ending_now(result), connection)
        self.durable.is_settled = True

    def _async_steps(self) -> AsyncSteps:
        steps = self.durable.steps
        if not isinstance(steps, AsyncSteps):
            history = self.durable.history()
            task = self._task or asyncio.current_task()
            if task is None:
                raise RuntimeError("the steps of an async job are awaited in its own event loop")
            steps = self.durable.steps = AsyncSteps(history, AsyncTurns(history, task), history.setting.async_access)
        self._refuse_lost()
        return steps

    def _suspend(self, suspended: Suspended) -> Any:
        self._async_steps().turns.suspended = suspended
        raise suspended

    @overload  # type: ignore[override]
    async def step(self, name: str, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @awaited
    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function and record its result; when the job is run again, return what is recorded: see `JobContext.step`."""
        check_step_name(name, "step")
        return await self._async_steps().step(StepCall(self._branch, name, self._rules, function, args, kwargs))

    @awaited
    async def sleep(self, seconds: float) -> None:  # type: ignore[override]
        """Let so much time pass; the worker is free meanwhile. It counts from when the job first came here."""
        check_duration(seconds, "seconds")
        await self._async_steps().sleep(self._branch, "~sleep", hash_of((seconds,), {}), seconds)

    @awaited
    async def sleep_until(self, moment: datetime) -> None:  # type: ignore[override]
        """Wait for a moment, with time zone; the worker is free meanwhile."""
        await self._async_steps().sleep(self._branch, "~sleep until", hash_of((moment,), {}), seconds_until(moment))

    @overload  # type: ignore[override]
    async def wait(self, name: str, type: type[T], *, timeout_s: float | None = None) -> T: ...
    @overload
    async def wait(self, name: str, type: Any = None, *, timeout_s: float | None = None) -> Any: ...
    @awaited
    async def wait(self, name: str, type: Any = None, *, timeout_s: float | None = None) -> Any:
        """The payload of the next signal of this name, sent with `Job.send`: see `JobContext.wait`."""
        check_step_name(name, "signal")
        check_duration(0.0 if timeout_s is None else timeout_s, "timeout_s")
        steps = self._async_steps()
        codec = steps.history.setting.codec or codec_for(None if type is Any else type, None)
        return await steps.wait(self._branch, name, codec, timeout_s)

    @awaited
    async def start(self, task: CallableTask[P, T], /, *args: P.args, **kwargs: P.kwargs) -> AsyncChild[T]:  # type: ignore[override]
        """Put a job of a task, in the same step as its record, and go on; `await child.result()` waits for it."""
        check_task(task)
        call, steps = task.args(*args, **kwargs), self._async_steps()
        make = self._child_maker(task, call, steps.history.message)
        key = await steps.family.start(self._branch, task.name, hash_of((), call.arguments), task.queue, make)
        return AsyncChild(steps, key, task.options.result_codec)

    @awaited
    async def call(self, task: CallableTask[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:  # type: ignore[override]
        """Put a job of a task and wait for its result; the worker is free meanwhile. Raises `ChildFailed` if there will be none."""
        return await (await self.start(task, *args, **kwargs)).result()

    @overload  # type: ignore[override]
    async def map(self, task: CallableTask[..., T], calls: "Iterable[Call[T]]", *, on_failure: Literal["raise"] = "raise") -> list[T]: ...
    @overload
    async def map(
        self, task: CallableTask[..., T], calls: "Iterable[Call[T]]", *, on_failure: Literal["collect"]
    ) -> list[T | JobFailed]: ...
    @awaited
    async def map(
        self, task: CallableTask[..., T], calls: "Iterable[Call[T]]", *, on_failure: Literal["raise", "collect"] = "raise"
    ) -> Any:
        """Put a job for each call, up to 100,000 of them, and wait for all: see `JobContext.map`."""
        steps, made = self._async_steps(), map_calls(task, calls, self._message, on_failure)
        return raised(await steps.maps.map(self._branch, made), on_failure)

    async def run_flow_async(self, graph: str, total: int, on_failure: OnFailure) -> dict[str, Any]:
        """Run the nodes of a flow: what the built-in task does."""
        return await AsyncFlowRun(self._async_steps(), graph, total, on_failure).run()

    @awaited
    async def now(self) -> datetime:  # type: ignore[override]
        """The moment at which the job first came here."""
        return await self._recorded("~now", utc_now)

    @awaited
    async def new_id(self) -> str:  # type: ignore[override]
        """A new id, the same whenever the job is run again."""
        return await self._recorded("~id", new_id)

    @awaited
    async def random(self) -> float:  # type: ignore[override]
        """A random number from 0 to 1, the same whenever the job is run again."""
        return await self._recorded("~random", random_number)

    async def _recorded(self, name: str, make: Callable[[], T]) -> T:  # type: ignore[override]
        found: T = await self._async_steps().step(StepCall(self._branch, name, PLAIN, make))
        return found


JobInTask = AsyncJobContext
"""The same by a name that is the same in the code for threads."""
