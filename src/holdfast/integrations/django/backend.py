"""The backend of `django.tasks`."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings
from django.core import checks
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from holdfast._sync.handles.job import Job
from holdfast.arguments.put_options import make_item
from holdfast.backoff import Backoff
from holdfast.codec import JSON
from holdfast.commands import Item, Put
from holdfast.ids import new_id
from holdfast.integrations.django.compat import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from holdfast.integrations.django.options import BackendOptions, TaskOptions, read_options
from holdfast.integrations.django.place import place_for
from holdfast.integrations.django.records import (
    Record,
    enqueued_at,
    errors_of,
    fill_in,
    look_at,
    metadata_of,
    moment,
    read_look,
    said_by,
    status_of,
    workers_of,
)
from holdfast.records import Message

known: dict[str, Task] = {}
"""The tasks of this process by their paths: each that was declared for a backend of ours, or enqueued here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldfastTask(Task):
    """A task with options of Holdfast: `@task(max_attempts=5, key=lambda user: user)`."""

    max_attempts: int | None = None
    """After how many failed attempts it is a dead letter, by default as OPTIONS say."""
    backoff: Backoff | None = None
    """How long to wait before the next attempt."""
    key: Callable[..., Hashable] | None = None
    """Called like the function: the key of the job, of which at most one living job of the queue has each."""
    if_present: Literal["keep", "update", "reject", "buffer"] | None = None
    """What happens if there is a job of the key already: see `Queue.put`."""
    start_within_s: float | None = None
    """The job is dropped if no worker has started it so long after it was due."""
    soft_limit_s: float | None = None
    """When the job is told to end."""
    hard_limit_s: float | None = None
    """When the job has failed, whatever it does."""

    def __post_init__(self) -> None:
        Task.__post_init__(self)
        known.setdefault(self.module_path, self)


class HoldfastBackend(BaseTaskBackend):
    """Tasks of Django as jobs of Holdfast, in Django's own database (`url="database:ALIAS"`) or in any store."""

    task_class = HoldfastTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.settings: BackendOptions = read_options(alias, self.options)
        self.place = place_for(self.settings.url, self.settings.database)

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Put the job; in a transaction of the same database it is part of that."""
        self.validate_task(task)
        known.setdefault(task.module_path, task)
        result = self._result(task, new_id(), args, kwargs)
        item = self._item(task, result)
        if self.settings.database is None and self.settings.outside == "on_commit":
            transaction.on_commit(lambda: self._put(task, item, result), using=self.settings.using)
            return result
        return self._put(task, item, result)

    def _put(self, task: Task, item: Item, result: TaskResult) -> TaskResult:
        puts = self.place.execute(Put(task.queue_name, [item]))
        self.place.wake(task.queue_name)
        fill_in(result, id=f"{task.queue_name}/{puts.ids[0]}")
        task_enqueued.send(type(self), task_result=result)
        return result

    def _item(self, task: Task, result: TaskResult) -> Item:
        said = self.options_of(task)
        fields: dict[str, Any] = {
            "id": result.id.rpartition("/")[2],
            "priority": task.priority,
            "max_attempts": said["max_attempts"],
            "metadata": metadata_of(task, result),
        }
        if task.run_after is not None:
            fields["at"] = task.run_after if timezone.is_aware(task.run_after) else timezone.make_aware(task.run_after)
        if said["start_within_s"] is not None:
            fields["start_within_s"] = said["start_within_s"]
        if (key := said["key"]) is not None:
            fields |= {"key": key(*result.args, **result.kwargs), "if_present": said["if_present"]}
        return make_item({"args": result.args, "kwargs": result.kwargs}, JSON, fields)

    def options_of(self, task: Task) -> dict[str, Any]:
        """The options of a task: those of its decorator, else those of `OPTIONS["tasks"]`, else those of the backend."""
        named = self.settings.tasks.get(task.module_path, TaskOptions())
        own = task if isinstance(task, HoldfastTask) else None
        found = {name: None if own is None else getattr(own, name) for name in ("backoff", "key")}
        for name in TaskOptions.__struct_fields__:
            given = None if own is None else getattr(own, name)
            found[name] = getattr(named, name) if given is None else given
        found["max_attempts"] = found["max_attempts"] or self.settings.max_attempts
        return found

    def get_result(self, result_id: str) -> TaskResult:
        """The result of a job that waits, runs, or ended not longer than `keep_result_s` ago."""
        queue, _, job_id = result_id.partition("/")
        if not job_id:
            raise TaskResultDoesNotExist(result_id)
        message, now, record = read_look(self.place.execute(look_at(queue, job_id)))
        found = message if message is not None else record
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return self.result_of(queue, job_id, message, now, record)

    def job(self, result_id: str) -> Job[Any]:
        """The job of a result, to cancel it, send it signals, or read its steps: on the connection of this thread, in its transaction."""
        queue, _, job_id = result_id.partition("/")
        return Job(queue, job_id, client=self.place.near)

    def result_of(self, queue: str, id: str, message: Message | None, now: int, record: Record | None) -> TaskResult:
        """The result as its message and its record tell it."""
        if message is not None:
            value, said = JSON.decode(message.value), said_by(message)
            task = task_at(str(said.get("task")), self.alias, queue)
            task = task.using(priority=message.priority, run_after=moment(said.get("run_after")))
            result = self._result(task, id, value["args"], value["kwargs"])
        else:
            assert record is not None  # noqa: S101 - one of the two is there
            result = self._result(task_at(record.task, self.alias, queue), id, record.args, record.kwargs)
        fill_in(result, status=status_of(message, now, record), errors=errors_of(message, record), enqueued_at=None)
        if record is not None:
            fill_in(result, enqueued_at=moment(record.enqueued_at), started_at=moment(record.started_at))
            fill_in(result, last_attempted_at=moment(record.attempted_at), finished_at=moment(record.finished_at))
            fill_in(result, worker_ids=list(record.workers), _return_value=record.result)
        if message is not None:
            offset_us = self.place.near.store.wall_offset_us()
            fill_in(result, enqueued_at=moment(enqueued_at(message, offset_us)), worker_ids=workers_of(message))
            if message.attempts:
                first = min([message.since, *(ending.since for ending in message.history)])
                fill_in(result, started_at=moment((first + offset_us) / 1e6), last_attempted_at=moment((message.since + offset_us) / 1e6))
            if message.dead_at is not None:
                fill_in(result, finished_at=moment((message.dead_at + offset_us) / 1e6))
        return result

    def _result(self, task: Task, id: str, args: Any, kwargs: Any) -> TaskResult:
        return TaskResult(
            task=task,
            id=f"{task.queue_name}/{id}",
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """What is doubtful about the settings."""
        yield from super().check(**kwargs)
        atomic = [alias for alias, database in settings.DATABASES.items() if database.get("ATOMIC_REQUESTS")]
        if atomic and self.settings.database is None and self.settings.outside is None:
            yield checks.Warning(
                f"TASKS[{self.alias!r}] puts jobs into a store that takes no part in the transactions of requests "
                f"(ATOMIC_REQUESTS of {', '.join(atomic)}).",
                hint="A request that is rolled back leaves its jobs behind, and a worker may run a job before its rows are committed. "
                "Say what you want: OPTIONS['outside'] = 'on_commit' or 'now'; or keep jobs in the database: 'url': 'database:default'.",
                id="holdfast.W001",
            )
        database = settings.DATABASES.get(self.settings.database or "", {})
        mode = str(database.get("OPTIONS", {}).get("transaction_mode", "DEFERRED")).upper()
        if database.get("ENGINE") == "django.db.backends.sqlite3" and mode == "DEFERRED":
            yield checks.Warning(
                f"TASKS[{self.alias!r}] keeps jobs in SQLite's {self.settings.database!r}, whose transactions begin as DEFERRED.",
                hint="One that has read and then wants to write fails with 'database is locked' if a worker wrote meanwhile. "
                f"Let it wait instead: DATABASES[{self.settings.database!r}]['OPTIONS'] = {{'transaction_mode': 'IMMEDIATE'}}.",
                id="holdfast.W002",
            )


def task_at(path: str, alias: str, queue: str) -> Task:
    """The task with this path; imported where this process has not met it yet."""
    found = known.get(path)
    if found is None:
        found = import_string(path)
    return found.using(backend=alias, queue_name=queue)
