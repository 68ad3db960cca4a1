"""A collection of tasks, and the worker that runs them."""

import builtins
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Concatenate, Never, ParamSpec, Protocol, TypeVar, Unpack, overload

from msgspec.structs import replace

from holdfast._async.flows.ticking import sync
from holdfast._async.handles.consumer import AsyncConsumer
from holdfast._async.handles.flow import AsyncFlows
from holdfast._async.handles.schedule import AsyncSchedule, AsyncTaskSchedule
from holdfast._async.handles.task import AsyncBatchTask, AsyncTask
from holdfast._async.handles.worker import AsyncWorker
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import refuse_unknown, show_options
from holdfast.arguments.where import JobHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import check_name
from holdfast.codec.limits import shown
from holdfast.codec.object_fields import Function
from holdfast.holding.hold import this_process
from holdfast.schedules.declared import declared_entries
from holdfast.schedules.definition import Synced
from holdfast.schedules.rules import Every
from holdfast.workers.calls import PutHook
from holdfast.workers.handlers.async_jobs import JobInTask
from holdfast.workers.handlers.batches import BatchTerms
from holdfast.workers.handlers.definitions import define, is_same, name_of, refuse_two
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.resources import Around, Per
from holdfast.workers.options import ConsumerOptions, ProcessOptions
from holdfast.workers.orders import Options, Orders, Table, chosen_queues, make_options
from holdfast.workers.task_options import TaskDefaults, TaskOptions, make_task, task_name

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

MANAGER = Function("manager", optional=False)
HOOK = Function("hook", optional=False)


class AsyncTaskDecorator(Protocol):
    """Makes a task of a function."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[JobInTask, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[JobContext, P], R], /) -> AsyncTask[P, R, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> AsyncTask[P, R, R]: ...


class AsyncBatchDecorator(Protocol):
    """Makes a task of a function that takes several jobs."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[builtins.list[V], ...], Coroutine[Any, Any, builtins.list[R]]], /
    ) -> AsyncBatchTask[V, R, Coroutine[Any, Any, builtins.list[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[builtins.list[V], ...], Coroutine[Any, Any, None]], /
    ) -> AsyncBatchTask[V, None, Coroutine[Any, Any, None]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[builtins.list[V], ...], builtins.list[R]], /
    ) -> AsyncBatchTask[V, R, builtins.list[R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[builtins.list[V], ...], None], /) -> AsyncBatchTask[V, None, None]: ...


class AsyncConsumerDecorator(Protocol):
    """Makes a consumer of a function."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[V, ...], Coroutine[Any, Any, R]], /
    ) -> AsyncConsumer[V, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[V, ...], R], /) -> AsyncConsumer[V, R, R]: ...


@show_options
class AsyncTasks(JobHandle):
    """A collection of tasks: typed functions whose calls are put as jobs, by name, so that many of them share a queue.

    The options are the defaults of its tasks. A worker gives back a job that it has no function for, and burns nothing: in the middle of a
    deploy another worker has it. A day after its put it is buried.
    """

    aio: ClassVar[Twin] = Twin()

    def __init__(
        self,
        name: str = "tasks",
        *,
        queue: str = "default",
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **defaults: Unpack[TaskDefaults],
    ) -> None:
        self.name = name
        self.queue: str = check_name(queue, "queue")
        refuse_unknown(f"Tasks({name!r})", defaults, set(TaskDefaults.__annotations__))
        self._defaults = defaults
        self._client = client
        self._base_url = base_url
        self._tasks: dict[str, AsyncTask[..., Any, Any]] = {}
        self._consumers: dict[str, AsyncConsumer[Any, Any, Any]] = {}
        self._schedules: list[AsyncTaskSchedule] = []
        self._included: list[AsyncTasks] = []
        self._around: list[Around] = []
        self._around_all: list[Around] = []
        self._hooks: list[PutHook] = []
        self._overrides: dict[Callable[[], Any], Any] = {}

    @overload
    def task(self, function: Callable[Concatenate[JobInTask, P], Coroutine[Any, Any, R]], /) -> AsyncTask[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, function: Callable[Concatenate[JobContext, P], R], /) -> AsyncTask[P, R, R]: ...
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> AsyncTask[P, R, R]: ...
    @overload
    def task(self, /, **options: Unpack[TaskOptions]) -> AsyncTaskDecorator: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]) -> Any:
        """Make a task of the function below: `@app.task`, or with options `@app.task(queue="media", max_attempts=5)`.

        Its parameters are the arguments of its jobs, kept by name as one JSON object; a first parameter annotated as `JobContext`, or
        as the context for tasks in an async function, is given the job. Raises `TypeError` for parameters without a name of their own, and
        `ValueError` for a name that another task has.
        """
        if function is None:
            return lambda function: self._add(function, options)
        return self._add(function, options)

    def batch(self, *, size: int = 100, within_s: float = 0.5, **options: Unpack[TaskOptions]) -> AsyncBatchDecorator:
        """Let one call of the function below take up to `size` jobs that come within `within_s` of the first.

        The function takes a list and returns None or a list of results, one for each; each `put` gives one element. A call has one seat of
        the concurrency, and each job its own lease, attempts and result. Raise `BatchFailed({index: exception})` if some failed: the others
        are done. Whatever else is raised counts for all of them. Best in a queue of its own, since jobs are claimed for a batch together.
        """
        terms = BatchTerms(size, within_s)
        return lambda function: self._add(function, options, terms)

    def _add(self, function: Callable[..., Any], options: TaskOptions, batch: BatchTerms | None = None) -> Any:
        if isinstance(function, JobHandle):
            raise TypeError(f"{function!r} is a task, a worker or a consumer already: decorate the function itself")
        given: dict[str, Any] = {**self._defaults, **options}
        name = task_name(function, given.get("name"))
        made = make_task(function, name, given.get("queue", self.queue), given, batch=batch)
        kind: type[AsyncTask[..., Any, Any]] = AsyncTask if batch is None else AsyncBatchTask
        task = kind(made, given=given, hooks=self._hooks, client=self._client, base_url=self._base_url)
        for one in (name, *given.get("aliases", ())):
            other = self._tasks.get(one)
            if other is not None and not is_same(other.function, function):
                raise ValueError(
                    f'task {one!r} is {name_of(other.function)} and {name_of(function)}: give one of them another name, @app.task(name="…")'
                )
            self._tasks[one] = task
        return task

    def consumer(self, queue: str, **options: Unpack[ConsumerOptions]) -> AsyncConsumerDecorator:
        """Let the function below take whatever else is put into the queue, by any program; a queue has at most one such function."""

        def made(function: Callable[..., Any]) -> Any:
            refuse_unknown(f"the consumer {name_of(function)}", options, set(ConsumerOptions.__annotations__))
            consumer: AsyncConsumer[Any, Any, Any] = AsyncConsumer(
                make_options(function, queue, **options), client=self._client, base_url=self._base_url
            )
            other = self._consumers.get(queue)
            refuse_two((one.function, (self, queue)) for one in (other, consumer) if one is not None)
            define(function, self._base_url if self._client is None else self._client, queue)
            self._consumers[queue] = consumer
            return consumer

        return made

    def schedule(self, rule: str | Every, task: AsyncTask[P, Any, Any], /, *args: P.args, **kwargs: P.kwargs) -> AsyncTaskSchedule:
        """Put a job of the task with these arguments by a rule: `app.schedule("0 3 * * *", report, kind="daily")`.

        Workers of these tasks save the schedule when they start, under the name of the task, and put what is due. What it returns takes the
        options of a schedule: `app.schedule(…).options(tz="Europe/Vienna", name="report in Vienna")`; it also pauses, runs and shows it.
        """
        if not isinstance(task, JobHandle):
            raise TypeError(f"a schedule is of a task, as @app.task makes it, not of {shown(task)} ({type(task).__name__})")
        call = task.args(*args, **kwargs)
        declared = AsyncTaskSchedule(rule, call, source=self.name, client=self._client, base_url=self._base_url)
        self._schedules.append(declared)
        return declared

    def around(self, manager: Around, *, per: Per = "job") -> None:
        """Run a context manager around each job of its tasks: it is called with the job.

        It sees what the function raises, and may raise `Snooze`, `Retry` or `Bury` instead; it cannot change the result. With
        `per="worker"` it is called without arguments, once in each process, before its first job, and ends with the worker.
        """
        if per not in ("worker", "job"):
            raise ValueError(f"per must be one of 'worker', 'job', not {per!r}")
        MANAGER.check(manager)
        (self._around if per == "job" else self._around_all).append(manager)

    def on_put(self, hook: PutHook) -> None:
        """Call a function with each job of its tasks before it is put: it may add to `metadata`; if it raises, nothing is put."""
        HOOK.check(hook)
        self._hooks.append(hook)

    def include(self, other: "AsyncTasks") -> None:
        """Let workers of these tasks run those of another collection, too, with its consumers and schedules."""
        if not isinstance(other, AsyncTasks):
            raise TypeError(f"include takes another collection of tasks, not {shown(other)} ({type(other).__name__})")
        for name, task in other._all_tasks().items():  # noqa: SLF001 - of this class
            known = self._all_tasks().get(name)
            if known is not None and not is_same(known.function, task.function):
                raise ValueError(f"task {name!r} is {name_of(known.function)} and {name_of(task.function)}: give one of them another name")
        consumers = [*self._all_consumers().items(), *other._all_consumers().items()]  # noqa: SLF001 - of this class
        refuse_two((consumer.function, (self, queue)) for queue, consumer in consumers)
        self._included.append(other)

    @contextmanager
    def override(self, use: Callable[[], Any], value: Any) -> Iterator[None]:
        """Give this value, in workers made inside the block, where a parameter says `Use(use)`: for tests."""
        before = self._overrides.copy()
        self._overrides[use] = value
        try:
            yield
        finally:
            self._overrides = before

    @property
    def flow(self) -> AsyncFlows:
        """Makes flows of these tasks: `app.flow("invoice")`, `app.flow.batch(…)`."""
        return AsyncFlows(self)

    def find(self, name: str) -> AsyncTask[..., Any, Any]:
        """The task of this name; ValueError if there is none."""
        found = self._tasks.get(name)
        if found is None:
            raise ValueError(f"Tasks({self.name!r}) has no task {name!r}: a flow is of tasks of one collection")
        return found

    @property
    def schedules(self) -> builtins.list[AsyncSchedule]:
        """The schedules of its tasks, as they are declared; saving one is what a worker does."""
        entries = declared_entries(self.declared)
        where: Where = {"client": self._client, "base_url": self._base_url}
        return [AsyncSchedule.of_entry(name, entry, **where) for name, entry in entries.items()]

    async def sync_schedules(self, *, prune: bool = False) -> Synced:
        """Save its schedules now, as its workers do when they start: for a deploy.

        With `prune` those that it declared before and does not any more are removed at once. Without, they run until an hour after the
        last worker that declares them has ended.
        """
        return await sync(self.client.async_store, self.name, declared_entries(self.declared), prune=prune)

    @property
    def declared(self) -> builtins.list[AsyncTaskSchedule]:
        """What `schedule` declared, here and in what it includes."""
        return [*self._schedules, *(schedule for other in self._included for schedule in other.declared)]

    @property
    def tasks(self) -> builtins.list[AsyncTask[..., Any, Any]]:
        """Every task, each once, also those that it includes."""
        return builtins.list({task.name: task for task in self._all_tasks().values()}.values())

    def _all_tasks(self) -> dict[str, AsyncTask[..., Any, Any]]:
        return {**self._tasks, **{name: task for other in self._included for name, task in other._all_tasks().items()}}  # noqa: SLF001 - of this class

    def _all_consumers(self) -> dict[str, AsyncConsumer[Any, Any, Any]]:
        return {**self._consumers, **{queue: one for other in self._included for queue, one in other._all_consumers().items()}}  # noqa: SLF001 - of this class

    def _all_options(self) -> tuple[dict[str, Options], dict[str, Options]]:
        """The options of all consumers and tasks, each with what is around its jobs."""
        around = tuple(self._around)
        consumers = {queue: replace(one.options, around=around) for queue, one in self._consumers.items()}
        tasks = {name: replace(task.options, around=around) for name, task in self._tasks.items()}
        for other in self._included:
            their_consumers, their_tasks = other._all_options()  # noqa: SLF001 - of this class
            consumers |= their_consumers
            tasks |= their_tasks
        return consumers, tasks

    def _all_around(self) -> tuple[Around, ...]:
        return (*self._around_all, *(manager for other in self._included for manager in other._all_around()))  # noqa: SLF001 - of this class

    @property
    def queues(self) -> builtins.list[str]:
        """The queues of its tasks and consumers, in the order in which they were declared."""
        return builtins.list(dict.fromkeys([*(task.queue for task in self.tasks), *self._all_consumers()]))

    @property
    def flow_queue(self) -> str:
        """The queue of its flows: its own if workers of these tasks serve that, else the first that they serve."""
        return self.queue if self.queue in self.queues else self.queues[0]

    def worker(
        self, *, queues: Sequence[str] | Mapping[str, float] | None = None, **options: Unpack[ProcessOptions]
    ) -> AsyncWorker[Never, Any, Any]:
        """A worker that runs these tasks; the options are those of `ProcessOptions`.

        `queues` says which queues share its concurrency. A list is an order: a queue gets a job only while those before it have none due. A
        mapping gives each queue a share by weight, at least one job at once, and lends what others leave unused. By default all queues of
        the tasks have equal shares.
        """
        refuse_unknown(f"a worker of Tasks({self.name!r})", options, set(ProcessOptions.__annotations__))
        names, weights = chosen_queues(queues, self.queues)
        consumers, tasks = self._all_options()
        table = Table({queue: one for queue, one in consumers.items() if queue in names}, tasks)
        fields: dict[str, Any] = {
            "name": this_process(),
            "by_policy": "lease_s" not in options,
            "declared": declared_entries(self.declared),
            "around": self._all_around(),
            "overrides": dict(self._overrides),
            **options,
        }
        orders = Orders(queues=names, weights=weights, table=table, **fields)
        return AsyncWorker.of_orders(orders, client=self._client, base_url=self._base_url)

    async def run(
        self,
        *,
        queues: Sequence[str] | Mapping[str, float] | None = None,
        until_empty: bool = False,
        max_jobs: int | None = None,
        signals: bool = True,
        **options: Unpack[ProcessOptions],
    ) -> None:
        """Run jobs until SIGTERM or SIGINT, or until nothing is due and nothing runs, or until so many jobs were run: see `Worker.run`."""
        await self.worker(queues=queues, **options).run(until_empty=until_empty, max_jobs=max_jobs, signals=signals)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {len(self.tasks)}>"
