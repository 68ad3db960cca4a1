"""An app of Celery: its settings, its tasks, and the worker that runs them."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from os import environ
from typing import Any, NoReturn, overload
from zoneinfo import ZoneInfo

from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.tasks import Tasks
from holdfast.client import ControlPlaneClient
from holdfast.rates import Rate
from holdfast.schedules.declared import TaskScheduleOptions
from holdfast.surfaces.celery.config import Config, seconds, settings_of
from holdfast.surfaces.celery.exceptions import ImproperlyConfigured, NotRegistered
from holdfast.surfaces.celery.moments import Moment
from holdfast.surfaces.celery.rate_limits import rate_of
from holdfast.surfaces.celery.refusals import refuse_unknown, refused
from holdfast.surfaces.celery.results import AsyncResult
from holdfast.surfaces.celery.routes import queue_in, route_of, routes_of
from holdfast.surfaces.celery.schedules import rule_of
from holdfast.surfaces.celery.signatures import Signature
from holdfast.surfaces.celery.task import Task, TaskOptions, put_options

BROKERS = ("amqp", "amqps", "pyamqp", "librabbitmq", "sqs", "kafka", "gcpubsub", "rpc", "db", "cache", "django-db", "django-cache")
BEAT = ("task", "schedule", "args", "kwargs", "options")
OF_RUNS = ("expires", "priority")
"""The options of a call that a periodic task may have."""

_apps: "list[Celery]" = []
_shared: "dict[str, Task]" = {}


class Celery:
    """An app. `broker` is the URL of a store; results are in the same store, so `backend` may only name it again.

    If the environment has HOLDFAST_URL, that is the store, whatever the program says: a program for RabbitMQ runs without a change.
    """

    def __init__(
        self, main: str | None = None, *, broker: str | None = None, backend: str | None = None, include: Sequence[str] = (), **unknown: Any
    ) -> None:
        refuse_unknown("Celery", unknown, ("main", "broker", "backend", "include"))
        self.main: str = main or "celery"
        self.conf: Config = Config()
        given = {"broker_url": broker, "result_backend": backend, "include": include or None}
        self.conf.update({name: value for name, value in given.items() if value is not None})
        self.on_after_configure: Moment = Moment()
        self.on_after_finalize: Moment = Moment()
        self._tasks: dict[str, Task] = {}
        _apps.append(self)

    @overload
    def task(self, function: Callable[..., Any], /) -> Task: ...
    @overload
    def task(self, /, **options: Any) -> Callable[[Callable[..., Any]], Task]: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Task | Callable[[Callable[..., Any]], Task]:
        """Make a task of the function below."""
        refuse_unknown("@app.task", options, TaskOptions.__struct_fields__)
        return _decorated(function, options, self._add)

    def _add(self, function: Callable[..., Any], options: TaskOptions) -> Task:
        task = Task(function, self, options, options.name or _name_of(function, self.main))
        self._tasks[task.name] = task
        return task

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Every task by its name, those of `shared_task` among them."""
        return {**_shared, **self._tasks}

    def named(self, name: str) -> Task:
        """The task of this name."""
        try:
            return self.tasks[name]
        except KeyError:
            raise NotRegistered(f"no task {name!r} is known here: import its module") from None

    def config_from_object(self, source: Any, *, namespace: str = "") -> None:
        """Take the settings of a module, an object or a mapping."""
        self.conf.update(settings_of(source, namespace))

    def autodiscover_tasks(self, packages: Iterable[str] | Callable[[], Iterable[str]] | None = None, related_name: str = "tasks") -> None:
        """Import the modules `tasks` of these packages; without packages, of the installed apps of Django."""
        if packages is None:
            packages = [config.name for config in import_module("django.apps").apps.get_app_configs()]
        for package in packages() if callable(packages) else packages:
            if find_spec(f"{package}.{related_name}") is not None:
                import_module(f"{package}.{related_name}")

    def send_task(self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> AsyncResult:
        """Put a task by its name, which need not be known here."""
        known = self.tasks.get(name)
        return self.put(name, args, kwargs or {}, options, None if known is None else known.options)

    def put(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any], of_task: TaskOptions | None
    ) -> AsyncResult:
        """Put a job of a task; its options are None where only its name is known."""
        said = TaskOptions() if of_task is None else of_task
        queue = options.get("queue") or self.queue_of(name, said)
        value = {"args": list(args), "kwargs": dict(kwargs)}
        fields = put_options(options, said, self)
        is_rated = self.rate_of(said) is not None
        if is_rated and queue != self.queue_of(name, said):
            raise ImproperlyConfigured(f"{name} has a rate_limit, which holds in its own queue: give queue={queue!r} to @app.task")
        if of_task is None or is_rated:
            fields["group"] = name  # The group that has the rate; workers know whether the others have one.
        to: Queue[Any] = Queue(queue, client=self.client)
        put = to.put(value, metadata={"task": name}, **fields)
        return AsyncResult(str(put), app=self, queue=queue)

    def rate_of(self, options: TaskOptions) -> Rate | None:
        """The rate of a task: its own, else `task_default_rate_limit`."""
        return rate_of(self.conf.task_default_rate_limit if options.rate_limit is None else options.rate_limit)

    def queue_of(self, name: str, options: TaskOptions) -> str:
        """The queue of a task: its own, else that of `task_routes`, else the default."""
        if options.queue is not None:
            return options.queue
        return route_of(self.conf.task_routes, name) or str(self.conf.task_default_queue)

    @property
    def queues(self) -> list[str]:
        """The queues that are known, the default first."""
        named = [self.queue_of(name, task.options) for name, task in self.tasks.items()]
        routed = [queue for pattern, route in routes_of(self.conf.task_routes) if (queue := queue_in(pattern, route)) is not None]
        return list(dict.fromkeys([self.conf.task_default_queue, *named, *routed]))

    @cached_property
    def client(self) -> ControlPlaneClient:
        """The client of its store."""
        url = environ.get("HOLDFAST_URL") or self.conf.broker_url
        if url is not None and url.partition(":")[0].partition("+")[0] in BROKERS:
            raise ImproperlyConfigured(
                f"the broker {url.partition(':')[0]}:// is not a store of Holdfast: set broker_url, or HOLDFAST_URL, to one, "
                "as in sqlite:///jobs.db, postgresql://…, redis://…"
            )
        backend = self.conf.result_backend
        if not environ.get("HOLDFAST_URL") and backend is not None and backend != url:
            raise ImproperlyConfigured(f"result_backend={backend!r}: results are kept in the store of the jobs; remove it, or name {url!r}")
        return ControlPlaneClient(url)

    def aware(self, moment: datetime) -> datetime:
        """A moment with a time zone: one without is of the app's, or with `enable_utc` of UTC."""
        if moment.tzinfo is not None:
            return moment
        return moment.replace(tzinfo=UTC if self.conf.enable_utc else ZoneInfo(self.conf.timezone))

    def add_periodic_task(self, schedule: Any, sig: Signature, *, name: str | None = None, **options: Any) -> str:
        """Let a signature be put by a schedule."""
        refuse_unknown("add_periodic_task", options, OF_RUNS, remedy="give it to @app.task")
        entry = {"task": sig.task, "schedule": schedule, "args": sig.args, "kwargs": sig.kwargs, "options": {**sig.options, **options}}
        self.conf.beat_schedule = {**self.conf.beat_schedule, name or repr(sig): entry}
        return name or repr(sig)

    def collected(self) -> Tasks:
        """Its tasks as tasks of Holdfast, without schedules."""
        made = Tasks(self.main, queue=self.conf.task_default_queue, client=self.client)
        for task in self.tasks.values():
            self._run_by(made, task)
        return made

    @property
    def holdfast(self) -> Tasks:
        """Its tasks and schedules as tasks of Holdfast: `app.holdfast.run()`, or `holdfast worker proj.celery:app.holdfast`."""
        for module in (*self.conf.imports, *self.conf.include):
            import_module(module)
        for moment in (self.on_after_configure, self.on_after_finalize):
            moment.tell(self)
        made = self.collected()
        for name, entry in self.conf.beat_schedule.items():
            refuse_unknown(f"beat_schedule[{name!r}]", entry, BEAT)
            if entry["task"] not in self.tasks:
                raise NotRegistered(f"beat_schedule[{name!r}] names the task {entry['task']!r}, which is not known here: import its module")
            args, kwargs = list(entry.get("args", ())), dict(entry.get("kwargs", {}))
            made.schedule(rule_of(entry["schedule"]), made.find(entry["task"]), args=args, kwargs=kwargs).options(
                **run_options(name, entry.get("options", {}), self.conf.timezone)
            )
        return made

    def _run_by(self, made: Tasks, task: Task) -> Any:
        options = task.options
        ignores = self.conf.task_ignore_result if options.ignore_result is None else options.ignore_result
        most = options.most_retries
        return made.task(
            name=task.name,
            queue=self.queue_of(task.name, options),
            max_attempts=None if most is None else most + 1,
            priority=self.conf.task_default_priority if options.priority is None else options.priority,
            start_within_s=seconds(options.expires),
            hard_limit_s=seconds(self.conf.task_time_limit if options.time_limit is None else options.time_limit),
            soft_limit_s=seconds(self.conf.task_soft_time_limit if options.soft_time_limit is None else options.soft_time_limit),
            rate=self.rate_of(options),
            results=not ignores,
            keep_result_s=seconds(self.conf.result_expires),
        )(task.perform)

    def AsyncResult(self, id: str) -> AsyncResult:  # noqa: N802 - Celery's name
        """The result of a task by its id."""
        return AsyncResult(id, app=self)

    @property
    def control(self) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused("app", "control", ())

    @property
    def events(self) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused("app", "events", ())

    @property
    def amqp(self) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused("app", "amqp", ())

    def worker_main(self, *_: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused("app", "worker_main", ())

    def start(self, argv: Sequence[str] | None = None) -> None:
        """End with a word on how workers are started here."""
        del argv
        sys.exit(f"workers are started by: holdfast worker {self.main}:app.holdfast")

    def __repr__(self) -> str:
        return f"<Celery {self.main}>"


def run_options(name: str, given: Mapping[str, Any], tz: str) -> TaskScheduleOptions:
    """The options of a schedule for those of a periodic task."""
    refuse_unknown(f"beat_schedule[{name!r}]['options']", given, OF_RUNS, remedy="give it to @app.task")
    found = TaskScheduleOptions(name=name, tz=tz, overlap="allow")
    if (expires := given.get("expires")) is not None:
        if isinstance(expires, datetime):
            raise ImproperlyConfigured(f"beat_schedule[{name!r}]: expires counts from each run: give seconds or a timedelta")
        found["start_within_s"] = float(seconds(expires) or 0.0)
    if given.get("priority") is not None:
        found["priority"] = given["priority"]
    return found


class CurrentApp:
    """Stands for the app that was made last; calling it gives that app."""

    def __call__(self) -> Celery:
        if not _apps:
            raise ImproperlyConfigured("there is no app yet: make one, app = Celery(…), before you use a shared task")
        return _apps[-1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self(), name)


current_app: CurrentApp = CurrentApp()


@overload
def shared_task(function: Callable[..., Any], /) -> Task: ...
@overload
def shared_task(**options: Any) -> Callable[[Callable[..., Any]], Task]: ...
def shared_task(function: Callable[..., Any] | None = None, /, **options: Any) -> Task | Callable[[Callable[..., Any]], Task]:
    """Make a task that belongs to every app."""
    refuse_unknown("@shared_task", options, TaskOptions.__struct_fields__)

    def add(made: Callable[..., Any], said: TaskOptions) -> Task:
        task = Task(made, None, said, said.name or _name_of(made, "celery"))
        _shared[task.name] = task
        return task

    return _decorated(function, options, add)


def _decorated(
    function: Callable[..., Any] | None, options: Mapping[str, Any], add: Callable[[Callable[..., Any], TaskOptions], Task]
) -> Task | Callable[[Callable[..., Any]], Task]:
    said = TaskOptions(**options)
    return add(function, said) if function is not None else lambda made: add(made, said)


def _name_of(function: Callable[..., Any], main: str) -> str:
    module = function.__module__
    return f"{main if module == '__main__' else module}.{function.__name__}"
