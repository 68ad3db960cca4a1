"""What a handler can do with the steps of its job, in a thread."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, Self, TypeVar, Unpack, overload

from msgspec import Raw

from holdfast.arguments.options import refuse_unknown
from holdfast.codec import check_duration, codec_for
from holdfast.commands import Item
from holdfast.errors import JobFailed
from holdfast.ids import new_id
from holdfast.records import Message
from holdfast.workers.steps._sync.child import Child
from holdfast.workers.steps._sync.maps import raised
from holdfast.workers.steps._sync.steps import Steps
from holdfast.workers.steps.called import CallableTask, check_task, map_calls
from holdfast.workers.steps.options import StepCall, StepOptions, StepRules
from holdfast.workers.steps.rows import check_step_name, hash_of
from holdfast.workers.steps.waits import Suspended

if TYPE_CHECKING:
    from holdfast.workers.calls import Call

P = ParamSpec("P")
T = TypeVar("T")

random_number: Callable[[], float] = SystemRandom().random


class StepContext:
    """The part of a job's context that both kinds of handlers share: options, branches, versions."""

    _branch: str = ""
    _rules: StepRules = StepRules()

    def _copied(self) -> Self:
        raise NotImplementedError

    def _message_of_job(self) -> Message:
        raise NotImplementedError

    def _head_version(self) -> Any:
        raise NotImplementedError

    def _encode_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Raw:
        raise NotImplementedError

    def _suspend(self, suspended: Suspended) -> NoReturn:
        raise NotImplementedError

    def options(self, **options: Unpack[StepOptions]) -> Self:
        """The job with options for its steps: `job.options(once=True, reconcile=find_charge).step("charge", charge, order)`."""
        refuse_unknown("options", options, set(StepOptions.__annotations__))
        copied = self._copied()
        copied._rules = StepRules(**options)  # noqa: SLF001 - a view of the same job
        return copied

    def branch(self, name: str) -> Self:
        """The job with counters of its own for equal steps: for branches that run side by side and make equal calls."""
        check_step_name(name, "branch")
        copied = self._copied()
        copied._branch = f"{self._branch}/{name}" if self._branch else name  # noqa: SLF001 - as above
        return copied

    @property
    def version(self) -> Any:
        """The version of the task's code that this job began with: `if job.version >= "3":` guards steps that older jobs do not have."""
        return self._head_version()

    def again(self, *args: Any, **kwargs: Any) -> NoReturn:
        """End this run, drop what is recorded, and begin again with other arguments, under the same id: for jobs that never end."""
        self._suspend(Suspended([], self._encode_arguments(args, kwargs)))

    def _child_maker(self, task: CallableTask[..., Any], call: "Call[Any]", parent: Message) -> Callable[[str], Item]:
        """What makes the message of a child, given its id."""
        return lambda child_id: task.message(call, id=child_id, metadata={"parent": [parent.queue, parent.id]})


class StepMethods(StepContext):
    """The steps of a job whose function runs in a thread."""

    def _own_steps(self) -> Steps:
        raise NotImplementedError

    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function and record its result; when the job is run again, return what is recorded.

        A step happens at least once: a worker may die between its effect and the record. Raises `StepFailed` once it has failed as often
        as it may, and `StepsChanged` if the history has steps that this run has not asked for.
        """
        check_step_name(name, "step")
        found: T = self._own_steps().step(StepCall(self._branch, name, self._rules, function, args, kwargs))
        return found

    def sleep(self, seconds: float) -> None:
        """Let so much time pass; the worker is free meanwhile. It counts from when the job first came here."""
        check_duration(seconds, "seconds")
        self._own_steps().sleep(self._branch, "~sleep", hash_of((seconds,), {}), seconds)

    def sleep_until(self, moment: datetime) -> None:
        """Wait for a moment, with time zone; the worker is free meanwhile."""
        self._own_steps().sleep(self._branch, "~sleep until", hash_of((moment,), {}), seconds_until(moment))

    @overload
    def wait(self, name: str, type: type[T], *, timeout_s: float | None = None) -> T: ...
    @overload
    def wait(self, name: str, type: Any = None, *, timeout_s: float | None = None) -> Any: ...
    def wait(self, name: str, type: Any = None, *, timeout_s: float | None = None) -> Any:
        """The payload of the next signal of this name, sent with `Job.send`; the worker is free meanwhile.

        A signal that was sent before is kept. With `timeout_s` raises `TimeoutError` so long after the job first came here.
        """
        check_step_name(name, "signal")
        check_duration(0.0 if timeout_s is None else timeout_s, "timeout_s")
        steps = self._own_steps()
        codec = steps.history.setting.codec or codec_for(None if type is Any else type, None)
        return steps.wait(self._branch, name, codec, timeout_s)

    def start(self, task: CallableTask[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]:
        """Put a job of a task, in the same step as its record, and go on; `result()` of what this returns waits for it."""
        check_task(task)
        call, steps = task.args(*args, **kwargs), self._own_steps()
        make = self._child_maker(task, call, steps.history.message)
        key = steps.family.start(self._branch, task.name, hash_of((), call.arguments), task.queue, make)
        return Child(steps, key, task.options.result_codec)

    def call(self, task: CallableTask[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Put a job of a task and wait for its result; the worker is free meanwhile. Raises `ChildFailed` if there will be none."""
        return self.start(task, *args, **kwargs).result()

    @overload
    def map(self, task: CallableTask[..., T], calls: "Iterable[Call[T]]", *, on_failure: Literal["raise"] = "raise") -> list[T]: ...
    @overload
    def map(self, task: CallableTask[..., T], calls: "Iterable[Call[T]]", *, on_failure: Literal["collect"]) -> list[T | JobFailed]: ...
    def map(self, task: CallableTask[..., T], calls: "Iterable[Call[T]]", *, on_failure: Literal["raise", "collect"] = "raise") -> Any:
        """Put a job for each call, up to 100,000 of them, and wait for all: their results, in the order of the calls.

        If some have no result, raises the `ChildFailed` of the first; with `on_failure="collect"` such errors stand in their places.
        """
        steps, made = self._own_steps(), map_calls(task, calls, self._message_of_job(), on_failure)
        return raised(steps.maps.map(self._branch, made), on_failure)

    def now(self) -> datetime:
        """The moment at which the job first came here."""
        return self._recorded("~now", utc_now)

    def new_id(self) -> str:
        """A new id, the same whenever the job is run again."""
        return self._recorded("~id", new_id)

    def random(self) -> float:
        """A random number from 0 to 1, the same whenever the job is run again."""
        return self._recorded("~random", random_number)

    def _recorded(self, name: str, make: Callable[[], T]) -> T:
        found: T = self._own_steps().step(StepCall(self._branch, name, PLAIN, make))
        return found


PLAIN = StepRules()


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def seconds_until(moment: datetime) -> float:
    """How long it is until a moment, 0 if it has passed."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ValueError("sleep_until needs a datetime with a time zone: datetime.now(UTC) + …, or when.astimezone() for local time")
    return max(0.0, (moment - utc_now()).total_seconds())
