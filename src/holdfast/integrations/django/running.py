"""Runs the tasks of a backend as jobs: in a worker, or here and now in a test."""

import inspect
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.utils.module_loading import autodiscover_modules

from holdfast._sync.handles.tasks import Tasks
from holdfast.commands import Command
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
    said_by,
    workers_of,
    write_of,
)
from holdfast.records import Message
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.outcomes import Bury, Retry, Snooze


class Attempt:
    """One attempt of a job: what Django is told of it, and what is kept."""

    def __init__(self, backend: HoldfastBackend, task: Task, message: Message, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.backend = backend
        self.task = task
        self.message = message
        self.args = args
        self.kwargs = kwargs
        self._now = time.time()
        self._errors: tuple[KeptError, ...] = ()
        self._first = self._now
        self._enqueued = enqueued_at(message, int(self._now * 1e6) - message.since)
        self.result: TaskResult = self._begin()

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
        task_started.send(type(self.backend), task_result=result)
        return result

    @property
    def arguments(self) -> list[Any]:
        """What the function is called with, in front of the keyword arguments."""
        return [TaskContext(task_result=self.result), *self.args] if self.task.takes_context else self.args

    @contextmanager
    def failures_kept(self) -> Iterator[None]:
        """Keep what the body raises, and let it go on. A `Snooze` is no failure."""
        try:
            yield
        except Snooze:
            raise
        except BaseException as error:
            self._failed(error)
            raise

    def succeeded(self, returned: Any) -> Command[Any]:
        """The command that keeps what was returned. What cannot be kept ends the job: it was done, and must not be done again."""
        try:
            value = normalize_json(returned)
        except (TypeError, ValueError) as error:
            raise Bury(f"{self.task.module_path} returned what is not JSON: {error}") from error
        fill_in(self.result, status=TaskResultStatus.SUCCESSFUL, _return_value=value)
        return self._kept(is_done=True, result=value)

    def finished(self) -> None:
        """Tell Django that it has ended."""
        task_finished.send(type(self.backend), task_result=self.result)

    def _failed(self, error: BaseException) -> None:
        self._errors = (*self._errors, kept_error(error))[-KEPT_ERRORS:]
        most = self.message.max_attempts
        is_last = isinstance(error, Bury) or (most is not None and self.message.failures + 1 >= most)
        if not is_last:
            self.backend.place.execute(self._kept())
            return
        fill_in(self.result, status=TaskResultStatus.FAILED)
        self.result.errors.extend(self._told())
        self.backend.place.execute(self._kept(ended=True))
        self.finished()

    def _told(self) -> list[TaskError]:
        return [TaskError(exception_class_path=one.path, traceback=one.traceback) for one in self._errors]

    def _kept(self, *, is_done: bool = False, ended: bool = False, result: Any = None) -> Command[Any]:
        finished_at = time.time() if is_done or ended else None
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
    for path, task in list(known.items()):
        _add(app, backend, path, task)
    added = {one.name: one for one in app.tasks}
    for name, said in backend.settings.schedules.items():
        if said.task not in added:
            raise InvalidTaskBackend(f"OPTIONS['schedules'][{name!r}]: there is no task {said.task!r}; known: {', '.join(sorted(added))}")
        app.schedule(said.rule, added[said.task], args=said.args, kwargs=said.kwargs).options(name=name, tz=said.tz, overlap=said.overlap)
    return app


def _add(app: Tasks, backend: HoldfastBackend, path: str, task: Task) -> None:
    said = backend.options_of(task)
    options = {name: said[name] for name in ("max_attempts", "backoff", "soft_limit_s", "hard_limit_s") if said[name] is not None}
    # The records have both.
    options |= {"name": path, "queue": task.queue_name, "results": False, "tracebacks": False}
    app.task(**options)(_runs_async(backend, path) if inspect.iscoroutinefunction(task.func) else _runs(backend, path))


def _runs(backend: HoldfastBackend, path: str) -> Any:
    def run(job: JobContext, args: list[Any], kwargs: dict[str, Any]) -> None:
        close_old_connections()
        try:
            attempt = Attempt(backend, task_at(path, backend.alias, job.queue), job.message, args, kwargs)
            with attempt.failures_kept():
                job.also(attempt.succeeded(attempt.task.func(*attempt.arguments, **kwargs)))
            attempt.finished()
        finally:
            close_old_connections()

    return run


def _runs_async(backend: HoldfastBackend, path: str) -> Any:
    async def run(job: JobContext, args: list[Any], kwargs: dict[str, Any]) -> None:
        # Records and signals may use the database, which Django refuses on the event loop.
        attempt = await sync_to_async(lambda: Attempt(backend, task_at(path, backend.alias, job.queue), job.message, args, kwargs))()
        failed: BaseException | None = None
        try:
            job.also(attempt.succeeded(await attempt.task.func(*attempt.arguments, **kwargs)))
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed = error
        await sync_to_async(_end)(attempt, failed)

    return run


def _end(attempt: Attempt, failed: BaseException | None) -> None:
    try:
        with attempt.failures_kept():
            if failed is not None:
                raise failed
        attempt.finished()
    finally:
        close_old_connections()


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


def run_here(backend: HoldfastBackend, message: Message, args: list[Any], kwargs: dict[str, Any]) -> Command[Any]:
    """Run a job in this thread and on its connections; returns the command that keeps its result, and raises what the task raised."""
    path = str(read_path(message))
    attempt = Attempt(backend, task_at(path, backend.alias, message.queue), message, args, kwargs)
    with attempt.failures_kept():
        kept = attempt.succeeded(attempt.task.call(*attempt.arguments, **kwargs))
    attempt.finished()
    return kept


def read_path(message: Message) -> str | None:
    """The path of the task that a message names."""
    return said_by(message).get("task")


def delay_of(error: BaseException, backend: HoldfastBackend, task: Task, failures: int) -> float:
    """How long the next attempt waits after this failure."""
    if isinstance(error, Retry) and error.delay_s is not None:
        return error.delay_s
    backoff = backend.options_of(task)["backoff"]
    return 0.0 if backoff is None else float(backoff.delay_s(failures))
