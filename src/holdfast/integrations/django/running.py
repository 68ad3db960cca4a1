"""Runs the tasks of a backend as jobs: in a worker, or here and now in a test."""

import inspect
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.utils.module_loading import autodiscover_modules

from holdfast._sync.handles.tasks import Tasks
from holdfast.commands import Command
from holdfast.commands.endings import Budget
from holdfast.integrations.django.backend import HoldfastBackend, known, task_at
from holdfast.integrations.django.compat import (
    InvalidTaskBackend,
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from holdfast.integrations.django.records import (
    KEPT_ERRORS,
    KeptError,
    Record,
    enqueued_at,
    fill_in,
    kept_error,
    look_at,
    moment,
    read_look,
    workers_of,
    write_of,
)
from holdfast.records import Message
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.judgement import judged
from holdfast.workers.handlers.outcomes import DONE, SETTLED, Bury, Outcome


class Attempt:
    """One attempt of a job: what Django is told of it, and what is kept."""

    def __init__(self, backend: HoldfastBackend, job: JobContext, path: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.backend = backend
        self.job = job
        self.message: Message = job.message
        self.task: Task = task_at(path, backend.alias, job.queue)
        self.args = args
        self.kwargs = kwargs
        self._now = time.time()
        self._errors: tuple[KeptError, ...] = ()
        self._first = self._now
        self._enqueued = enqueued_at(self.message, int(self._now * 1e6) - self.message.since)
        self.result: TaskResult = self._begin()
        job.settles_by(lambda returned: [self._succeeded(returned)])

    def _begin(self) -> TaskResult:
        message = self.message
        if message.history:
            _, _, record = read_look(self.backend.place.execute(look_at(message.queue, message.id)))
            self._errors = () if record is None else record.errors
            self._first = self._now - max(0, message.since - message.history[0].since) / 1e6
        result = TaskResult(
            task=self.task,
            id=f"{message.queue}/{message.id}",
            status=TaskResultStatus.RUNNING,
            enqueued_at=moment(self._enqueued),
            started_at=moment(self._first),
            finished_at=None,
            last_attempted_at=moment(self._now),
            args=self.args,
            kwargs=self.kwargs,
            backend=self.backend.alias,
            errors=[],
            worker_ids=workers_of(message),
        )
        if not self._goes_on:
            task_started.send(type(self.backend), task_result=result)
        return result

    @property
    def _goes_on(self) -> bool:
        """Whether it continues an attempt that began before: a durable job that was given back, or waited."""
        return self.job.durable.is_durable and bool(self.message.history) and self.message.history[-1].how == "released"

    @property
    def arguments(self) -> list[Any]:
        """What the function is called with, in front of the keyword arguments."""
        return [TaskContext(task_result=self.result), *self.args] if self.task.takes_context else self.args

    def returned(self, value: Any) -> None:
        """Keep what the function returned, unless it has ended its job itself."""
        if not self.job.durable.is_settled:
            self.job.also(self._succeeded(value))

    def ended(self, error: BaseException | None = None) -> None:
        """Tell Django how it ended, if it did; the record of a failure goes into the step that settles the job.

        A job that sleeps, is given back, or was lost to another worker has not ended.
        """
        outcome = SETTLED if error is None and self.job.durable.is_settled else self.job.durable.judged(self._judged(error))
        match outcome.how:
            case "done" | "settled":
                self._finished(TaskResultStatus.SUCCESSFUL)
            case "failed" | "buried" | "cancelled":
                if error is not None:
                    self._errors = (*self._errors, kept_error(error))[-KEPT_ERRORS:]
                is_final = outcome.how != "failed" or self._is_last
                self.job.also(self._kept(has_ended=is_final), outcome.how)
                if is_final:
                    self.result.errors.extend(self._told())
                    self._finished(TaskResultStatus.FAILED)

    def _judged(self, error: BaseException | None) -> Outcome:
        return DONE if error is None else judged(error, self.job)

    def _succeeded(self, returned: Any) -> Command[Any]:
        """The command that keeps what was returned. What cannot be kept ends the job: it was done, and must not be done again."""
        try:
            value = normalize_json(returned)
        except (TypeError, ValueError) as error:
            raise Bury(f"{self.task.module_path} returned what is not JSON: {error}") from error
        fill_in(self.result, _return_value=value)
        return self._kept(has_ended=True, is_done=True, result=value)

    def _finished(self, status: TaskResultStatus) -> None:
        fill_in(self.result, status=status)
        task_finished.send(type(self.backend), task_result=self.result)

    @property
    def _is_last(self) -> bool:
        most = self.backend.options_of(self.task)["max_attempts"]
        return Budget(most).is_spent(self.message, self.message.failures + 1)

    def _told(self) -> list[TaskError]:
        return [TaskError(exception_class_path=one.path, traceback=one.traceback) for one in self._errors]

    def _kept(self, *, has_ended: bool, is_done: bool = False, result: Any = None) -> Command[Any]:
        finished_at = time.time() if has_ended else None
        fill_in(self.result, finished_at=moment(finished_at))
        record = Record(
            task=self.task.module_path,
            args=self.args,
            kwargs=self.kwargs,
            enqueued_at=self._enqueued,
            started_at=self._first,
            attempted_at=self._now,
            finished_at=finished_at,
            workers=tuple(workers_of(self.message)),
            errors=self._errors,
            is_done=is_done,
            result=result,
        )
        return write_of(self.message.queue, self.message.id, record, self.backend.settings.keep_result_s)


def tasks_of(backend: HoldfastBackend) -> Tasks:
    """Every task that this process knows, as tasks of Holdfast under their paths."""
    app = Tasks("django", client=backend.place.client)
    app.around(_fresh_connections)
    for task in list(known.values()):
        _add(app, backend, task)
    added = {one.name: one for one in app.tasks}
    for name, said in backend.settings.schedules.items():
        if said.task not in added:
            raise InvalidTaskBackend(f"OPTIONS['schedules'][{name!r}]: there is no task {said.task!r}; known: {', '.join(sorted(added))}")
        app.schedule(said.rule, added[said.task], args=said.args, kwargs=said.kwargs).options(name=name, tz=said.tz, overlap=said.overlap)
    return app


def _add(app: Tasks, backend: HoldfastBackend, task: Task) -> None:
    said = backend.options_of(task)
    names = ("max_attempts", "backoff", "start_within_s", "soft_limit_s", "hard_limit_s")
    options: dict[str, Any] = {name: said[name] for name in names if said[name] is not None}
    # The records have both.
    options |= {"name": task.module_path, "queue": task.queue_name, "priority": task.priority, "results": False, "tracebacks": False}
    app.task(**options)(function_of(backend, task))


def function_of(backend: HoldfastBackend, task: Task) -> Any:
    """The function of the jobs of a task."""
    return (_runs_async if inspect.iscoroutinefunction(task.func) else _runs)(backend, task.module_path)


def _runs(backend: HoldfastBackend, path: str) -> Any:
    def run(job: JobContext, args: list[Any], kwargs: dict[str, Any]) -> None:
        attempt = Attempt(backend, job, path, args, kwargs)
        try:
            attempt.returned(attempt.task.func(*attempt.arguments, **kwargs))
        except BaseException as error:
            attempt.ended(error)
            raise
        attempt.ended()

    return run


def _runs_async(backend: HoldfastBackend, path: str) -> Any:
    async def run(job: JobContext, args: list[Any], kwargs: dict[str, Any]) -> None:
        # Records and signals may use the database, which Django refuses on the event loop.
        attempt = await sync_to_async(Attempt)(backend, job, path, args, kwargs)
        try:
            attempt.returned(await attempt.task.func(*attempt.arguments, **kwargs))
        except BaseException as error:
            await sync_to_async(attempt.ended)(error)
            raise
        await sync_to_async(attempt.ended)()

    return run


def _fresh_connections(job: JobContext) -> AbstractContextManager[None] | AbstractAsyncContextManager[None]:
    """Close connections that are broken or have served too long, before a job and after it."""
    return _fresh_of_loop() if isinstance(job, AsyncJobContext) else _fresh_of_thread()


@contextmanager
def _fresh_of_thread() -> Iterator[None]:
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


@asynccontextmanager
async def _fresh_of_loop() -> AsyncIterator[None]:
    await sync_to_async(close_old_connections)()
    try:
        yield
    finally:
        await sync_to_async(close_old_connections)()


def import_tasks(backend: HoldfastBackend) -> None:
    """Import the modules in which tasks are: `tasks` of each installed app, those that OPTIONS name, and what the URLs lead to."""
    autodiscover_modules("tasks")
    for module in (*backend.settings.modules, *([settings.ROOT_URLCONF] if getattr(settings, "ROOT_URLCONF", None) else [])):
        import_module(module)


def our_backend(alias: str) -> HoldfastBackend:
    """The backend of this alias; `InvalidTaskBackend` if it is of another kind."""
    backend = task_backends[alias]
    if not isinstance(backend, HoldfastBackend):
        raise InvalidTaskBackend(f"TASKS[{alias!r}] is a {type(backend).__name__}, not a HoldfastBackend: name another with --backend")
    return backend
