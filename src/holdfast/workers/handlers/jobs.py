"""The job that a handler receives: its message, its reports, and its limits."""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from copy import copy
from datetime import datetime
from typing import Any, Literal, NoReturn, Protocol, Self, Unpack, runtime_checkable

from msgspec import Raw

from holdfast.arguments.dict_changes import change_of
from holdfast.arguments.options import show_options
from holdfast.arguments.put_options import PutOptions, make_item
from holdfast.codec import JSON, Codec, encode_key
from holdfast.commands import Together
from holdfast.errors import ClaimLost, HoldfastError, JobCancelled, TimeLimitExceeded, WorkerStopping
from holdfast.records import Message
from holdfast.steps import Handle
from holdfast.stores.caller_transaction import Connection
from holdfast.views.messages import MessageView
from holdfast.workers.flows.nodes import OnFailure
from holdfast.workers.handlers.outcomes import How, Outcome
from holdfast.workers.steps._sync.flows import FlowRun
from holdfast.workers.steps._sync.steps import Steps
from holdfast.workers.steps.access import StepSetting
from holdfast.workers.steps.context import StepMethods
from holdfast.workers.steps.runs import AnySteps, StepRun
from holdfast.workers.steps.turns import Turns
from holdfast.workers.steps.waits import Suspended

StopReason = Literal["cancelled", "time", "stopping", "lost"]


@show_options
class JobContext(StepMethods, MessageView[Any]):
    """One execution of a job, for its handler: declare a parameter named `job`, behind the value, to be given it.

    What it `put`s and `write`s happens in the same atomic step as the acknowledgement: all of it once the handler has returned, or
    nothing. What it `report`s is written meanwhile, for watchers. With its first `step`, `sleep`, `wait` or `call` the job is durable:
    when it is run again, it goes on behind what is recorded.
    """

    raised: BaseException | None = None

    def __init__(self, message: Message, codec: Codec, setting: StepSetting | None = None, started: float = 0.0) -> None:
        self._message = message
        self._codec = codec
        self.durable: StepRun = StepRun(message, setting, started)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it should stop, None if it should not."""
        return self.durable.stop_reason

    @stop_reason.setter
    def stop_reason(self, reason: StopReason | None) -> None:
        self.durable.stop_reason = reason

    @property
    def message(self) -> Message:
        """The message as the store gave it."""
        return self._message

    @property
    def scheduled_for(self) -> datetime | None:
        """The moment of the schedule's run that it is, None if no schedule put it."""
        moment = (self.metadata or {}).get("scheduled_for")
        return None if moment is None else datetime.fromisoformat(str(moment))

    @property
    def lost(self) -> bool:
        """Whether another worker may have the message by now."""
        return self.stop_reason == "lost"

    @property
    def should_stop(self) -> bool:
        """Whether it was cancelled, has run for too long, was lost, or its worker ends."""
        return self.stop_reason is not None

    def check(self) -> None:
        """Raise if the job should stop: what a long handler of a thread does now and then, since nothing can interrupt it."""
        if self.stop_reason is not None:
            raise stop_error(self)

    def report(self, progress: Any) -> None:
        """Say how far it is; the newest report is written to the dict `<queue>-progress` under the id of the message."""
        self.report_raw(JSON.encode(progress))

    def progress(self, done: float, note: str = "", *, total: float = 1.0, data: Any = None) -> None:
        """Report how much is done of a total, with a note for people; `Job.status().progress` has it as a dict.

        The newest is written, at most five times a second.
        """
        self.report({"done": done, "total": total, "note": note, "data": data})

    def report_raw(self, progress: Raw) -> None:
        """Report what is encoded already."""
        if self.durable.owner is not None:
            self.durable.owner.report(self, progress)

    def put(self, queue: Handle | str, value: Any, **options: Unpack[PutOptions]) -> str:
        """Put a message when this job is done, in the same step; return its id. The options are those of `Queue.put`."""
        self._refuse_late("a put")
        name, codec = _named(queue)
        item = make_item(value, codec, options)
        self.durable.at_end.items.setdefault(name, []).append(item)
        return item.id

    def write(self, shared: Handle | str, key: Hashable, value: Any, *, ttl_s: float | None = None) -> None:
        """Write an entry of a dict when this job is done, in the same step; the last of several on one key counts."""
        self._refuse_late("a write")
        name, codec = _named(shared)
        change = change_of(key, value=codec.encode(value), ttl_s=ttl_s)
        changes = self.durable.at_end.changes
        others = [other for other in changes.get(name, []) if other.key != encode_key(key)]
        changes[name] = [*others, change]

    def also(self, command: Any, how: How = "done") -> None:
        """Add any command to the step that settles this job, if it ends so: by default to the one that acknowledges it."""
        self.durable.at_end.commands.setdefault(how, []).append(command)

    def done(self, result: Any = None, *, connection: Connection) -> None:
        """End the job now, in the transaction of a connection of yours to the same database: it is done exactly if you commit.

        The result, and what it `put` and `wrote` so far, go with it; when the function returns, the worker settles nothing. If the function
        raises, or the transaction is rolled back, the job is tried again. Raises `ClaimLost` if another worker may have the job. It is the
        last thing to do with the job, and not for functions that run in processes.
        """
        if self.durable.is_durable:
            self.durable.end_with("done", self._own_steps().deletion())
        self.durable.setting.access.execute(self._ending_now(result), connection)
        self.durable.is_settled = True

    def settles_by(self, settling: Callable[[Any], list[Any]]) -> None:
        """Take the commands that settle it with a result from this, too."""
        self.durable.at_end.settling.append(settling)

    def _ending_now(self, result: Any) -> Together:
        owner = self.durable.owner
        if owner is None:
            raise HoldfastError("job.done() is for functions that a worker runs")
        also = [command for settling in self.durable.at_end.settling for command in settling(result)]
        return Together([*owner.settling(self, result), *also, *self.durable.ending("done")])

    def begin(self, *, takes_job: bool) -> None:
        """Raise if it should not even begin; read what is recorded of it, if it may be durable."""
        if self.durable.is_to_load(takes_job=takes_job):
            self._own_steps().load()
            self._loaded()
        if self.durable.stop_reason is not None:
            self.check()

    def _loaded(self) -> None:
        if (args := self.durable.loaded()) is not None:
            self._value = self._codec.decode(args)

    def ended(self, outcome: Outcome) -> Outcome:
        """How the run really ended: perhaps the job only sleeps. What goes with that is ready then."""
        durable = self.durable
        durable.has_ended = True
        if durable.steps is None:
            return outcome
        outcome = durable.judged(outcome)
        if durable.removes(outcome):
            durable.end_with(outcome.how, self._own_steps().deletion())
        return outcome

    def _own_steps(self) -> Steps:
        steps = self.durable.steps
        if not isinstance(steps, Steps):
            history = self.durable.history()
            steps = self.durable.steps = Steps(history, Turns(history), history.setting.access)
        self._refuse_lost()
        return steps

    def _refuse_lost(self) -> None:
        if self.stop_reason == "lost":
            raise stop_error(self)

    def _refuse_late(self, what: str) -> None:
        if self.durable.has_ended or self.durable.is_settled:
            raise HoldfastError(
                f"the run of job {self.id} of queue {self.queue!r} has ended, and {what} of a job goes with its end: "
                "do it before the function returns, or on the queue or dict itself"
            )

    def run_flow(self, graph: str, total: int, on_failure: OnFailure) -> dict[str, Any]:
        """Run the nodes of a flow: what the built-in task does."""
        return FlowRun(self._own_steps(), graph, total, on_failure).run()

    def _message_of_job(self) -> Message:
        return self._message

    def _copied(self) -> Self:
        return copy(self)

    def _head_version(self) -> Any:
        return self.durable.version

    def _encode_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Raw:
        if isinstance(self._codec, ArgumentCodec):
            return self._codec.encode(self._codec.bind(*args, **kwargs))
        if len(args) != 1 or kwargs:
            raise TypeError(f"this job has one value: give one, not {len(args) + len(kwargs)}")
        return self._codec.encode(args[0])

    def _suspend(self, suspended: Suspended) -> NoReturn:
        steps: AnySteps = self._own_steps()
        steps.turns.suspended = suspended
        raise suspended

    def ending_commands(self, how: How) -> list[Any]:
        """What goes into the step that settles it, if it ended so."""
        return self.durable.ending(how)


@runtime_checkable
class ArgumentCodec(Codec, Protocol):
    """The codec of a task's arguments, which knows the parameters."""

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments by name; TypeError if the function cannot be called with them."""
        ...


running: ContextVar[JobContext | None] = ContextVar("holdfast_job", default=None)
"""The job whose handler runs in this thread or task."""


def current_job() -> JobContext | None:
    """The job whose handler is running here, None outside of one."""
    return running.get()


def stop_error(job: JobContext) -> HoldfastError:
    """What tells a handler that it should stop, and why."""
    what = f"job {job.id} of queue {job.queue!r}"
    match job.stop_reason:
        case "cancelled":
            return JobCancelled(f"{what} was cancelled")
        case "time":
            return TimeLimitExceeded(f"{what} has run for longer than its worker allows")
        case "stopping":
            return WorkerStopping(f"{what} must end with its worker, and will be run again")
        case _:
            return ClaimLost(f"{what} is lost: another worker may have it now", [job.message.receipt])


def _named(handle: Handle | str) -> tuple[str, Codec]:
    return (handle, JSON) if isinstance(handle, str) else (handle.name, vars(handle)["_codec"])
