"""A task: a function whose calls are put as jobs."""

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, Unpack

from msgspec import Raw

from holdfast._async.flows.putting import put_by
from holdfast._async.handles.job import AsyncJob, job_of
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import refuse_unknown, show_options
from holdfast.arguments.put_options import PutOptions
from holdfast.arguments.where import JobHandle
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.commands import Item, Put
from holdfast.stores.caller_transaction import AsyncConnection
from holdfast.workers.calls import Call, Messages, PutHook, listed_calls
from holdfast.workers.handlers.jobs import JobContext, current_job
from holdfast.workers.orders import Options
from holdfast.workers.task_options import messages_of

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")
C = TypeVar("C")


class AsyncUsingOptions(PutOptions, total=False):
    """The options of `Task.using`: those of `Queue.put`."""

    timeout_s: float | None
    """How long to wait while the queue is full; None, the default, raises `QueueFull` at once."""
    connection: AsyncConnection | None
    """A connection of yours to the same database: the job is put when its transaction is committed, or never."""


@show_options
class AsyncTask(JobHandle, Generic[P, R, C]):
    """A function whose calls can be put as jobs, for any worker that knows it; `Tasks.task` makes one. Calling it calls the function.

    To type checkers it is a `Task[P, R, C]`: put with the parameters `P`, with a result of `R`; calling it gives `C`, which is `R` or, if
    the function is async, a coroutine of it.
    """

    aio: ClassVar[Twin] = Twin()

    options: Options

    def __init__(
        self,
        options: Options,
        *,
        given: Mapping[str, Any],
        hooks: Sequence[PutHook] = (),
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> None:
        self.options = options
        self.function: Callable[..., C] = options.handler.function
        self._messages = messages_of(options, given, hooks)
        self._client = client
        self._base_url = base_url

    @property
    def name(self) -> str:
        """What jobs call it."""
        return self.options.task

    @property
    def queue(self) -> str:
        """The name of the queue of its jobs."""
        return self.options.queue

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Call the function itself, here and now: no queue takes part. One that takes the job gets the job that is running here."""
        if not self._messages.arguments.takes_job or (args and isinstance(args[0], JobContext)):
            return self.function(*args, **kwargs)
        job = current_job()
        if job is None:
            raise TypeError(f"{self.name} takes the job, and none is running here: call {self.options.handler.name}.function(job, …)")
        return self.function(job, *args, **kwargs)

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJob[R]:
        """Put a job that calls the function with these arguments; TypeError for one that does not fit its annotation."""
        return await AsyncBound(self, self._messages, {}).put(*args, **kwargs)

    async def put_many(self, calls: Iterable[Call[R]]) -> builtins.list[AsyncJob[R]]:
        """Put several jobs, each given by `args`, all or none."""
        return await AsyncBound(self, self._messages, {}).put_many(calls)

    def args(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A call of the function with these arguments, to be put later."""
        return Call(self.name, self._messages.arguments.bind(*args, **kwargs), self._messages)

    def message(self, call: Call[R], **options: Unpack[PutOptions]) -> Item:
        """The message that a put of this call makes; the options are those of `Queue.put`."""
        return self._messages.item(call.of(self.name), options)

    def message_without(self, arguments: Raw) -> Item:
        """The message of a call of which only these arguments are known yet."""
        return self._messages.without(arguments)

    def using(self, **options: Unpack[AsyncUsingOptions]) -> "AsyncBound[P, R]":
        """The task with options for its puts: `send.using(delay_s=60.0).put("ann")`."""
        refuse_unknown("using", options, set(AsyncUsingOptions.__annotations__))
        return AsyncBound(self, self._messages, options)

    def job(self, id: str) -> AsyncJob[R]:
        """The job with this id."""
        return job_of(self.options, id, self.client)

    def _codecs(self) -> Iterable[Codec]:
        return self.options.codecs

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of queue {self.queue!r}>"


class AsyncBatchTask(AsyncTask[[V], R, C]):
    """A function that takes the arguments of several jobs in one call: `Tasks.batch` makes one. Each put gives it one element of its list.

    To type checkers it is a `BatchTask[V, R, C]`: put with a `V`, with a result of `R`; calling it with a list gives `C`.
    """

    aio: ClassVar[Twin] = Twin()

    def __call__(self, values: "builtins.list[V]", /) -> C:  # type: ignore[override]
        """Call the function itself, here and now: no queue takes part."""
        return self.function(values)


class AsyncBound(Generic[P, R]):
    """A task with options for its puts: what `Task.using` gives."""

    def __init__(self, task: "AsyncTask[P, R, Any]", messages: Messages, options: Mapping[str, Any]) -> None:
        self._task = task
        self._messages = messages
        self._options = dict(options)
        self._connection: AsyncConnection | None = self._options.pop("connection", None)
        self._timeout_s: float | None = self._options.pop("timeout_s", None)

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJob[R]:
        """Put a job that calls the function with these arguments."""
        return (await self.put_many([self._task.args(*args, **kwargs)]))[0]

    async def put_many(self, calls: Iterable[Call[R]]) -> list[AsyncJob[R]]:
        """Put several jobs, each given by `args`, all or none; with `id=` or `key=` only one."""
        task = self._task
        items = [self._messages.item(call.of(task.name), self._options) for call in listed_calls(calls)]
        if not items:
            return []
        if len(items) > 1 and not {"id", "key"}.isdisjoint(self._options):
            raise ValueError("id= and key= name one job: put the others without, or one by one")
        puts = await put_by(task.client, Put(task.queue, items), self._timeout_s, connection=self._connection)
        return [task.job(message_id) for message_id in puts.ids]
