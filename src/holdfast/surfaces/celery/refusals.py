"""What is not supported, and what to do instead."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final

from holdfast.surfaces.celery.exceptions import ImproperlyConfigured

ROUTES: Final = "there are no exchanges: name a queue, with queue= or task_routes"
LINKS: Final = "let the task itself call the other one, `other.delay(…)`"
COMMITS: Final = "or use holdfast.integrations.django, whose jobs commit with your rows"
JSON_ONLY: Final = "only JSON is kept: give 'json', and arguments that are plain data"

REMEDIES: Final[Mapping[str, str]] = {
    "task_annotations": "give the options to @app.task; task_default_rate_limit is for all tasks",
    "worker_disable_rate_limits": "leave rate_limit out, or give '0'",
    "throws": "remove it: what fails is logged alike",
    "interval_start": "give default_retry_delay, or retry_backoff",
    "interval_step": "give retry_backoff",
    "store_errors_even_if_ignored": "remove it: errors are always kept",
    "acks_on_failure_or_timeout": "a job that failed is a dead letter, which holdfast.Queue.redrive runs again: remove it",
    "delay_on_commit": f"call django.db.transaction.on_commit(lambda: task.delay(…)), {COMMITS}",
    "apply_async_on_commit": f"call django.db.transaction.on_commit(lambda: task.apply_async(…)), {COMMITS}",
    "subtask": "it is signature",
    "maybe_signature": "it is signature",
    "xmap": "make a group, `group(task.s(item) for item in items)`",
    "xstarmap": "make a group, `group(task.s(*item) for item in items)`",
    "ResultSet": "use GroupResult, or a list of AsyncResult",
    "result_from_tuple": "find a result by its id, AsyncResult(id)",
    "CeleryError": "catch holdfast.HoldfastError",
    "ChordError": "the error of the member is raised: catch TaskError",
    "TimeLimitExceeded": "a task that reached its time_limit has failed: catch TaskError",
    "WorkerLostError": "a job whose worker died is run again, and has failed after its attempts: catch TaskError",
    "link": "make a chain, `task.s(…) | next_task.s()`",
    "link_error": f"{LINKS}, in an except clause",
    "exchange": ROUTES,
    "exchange_type": ROUTES,
    "routing_key": ROUTES,
    "task_queues": ROUTES,
    "task_default_exchange": ROUTES,
    "task_default_routing_key": ROUTES,
    "task_create_missing_queues": ROUTES,
    "headers": "use holdfast.Queue.put(metadata=…) for what travels beside a message",
    "base": "write a decorator, or a function that the task calls",
    "typing": "arguments are checked when the function is called",
    "track_started": "it is always so: a running task is STARTED",
    "task_track_started": "it is always so: a running task is STARTED",
    "send_events": "look at holdfast.Worker.list(), `holdfast queue`, or the log",
    "worker_send_task_events": "look at holdfast.Worker.list(), `holdfast queue`, or the log",
    "task_send_sent_event": "look at holdfast.Worker.list(), `holdfast queue`, or the log",
    "reject_on_worker_lost": "it is always so: a job whose worker died is run again, within its attempts",
    "task_reject_on_worker_lost": "it is always so: a job whose worker died is run again, within its attempts",
    "worker_prefetch_multiplier": "a worker claims ahead only while jobs are short; give prefetch= to app.holdfast.run(…)",
    "broker_transport_options": "options of a store stand in its URL",
    "broker_connection_retry_on_startup": "a worker waits for its store by itself: remove it",
    "worker_max_tasks_per_child": "tasks run in threads here: remove it",
    "retry": "a put that could not be sent is tried again by the store's client: remove it",
    "retry_policy": "a put that could not be sent is tried again by the store's client: remove it",
    "compression": "wrap a codec of holdfast.Tasks; the surface keeps plain JSON",
    "chunks": "make a group of slices, `group(task.s(part) for part in parts)`",
    "map": "make a group, `group(task.s(item) for item in items)`",
    "starmap": "make a group, `group(task.s(*item) for item in items)`",
    "solar": "put the job for that moment, `task.apply_async(eta=…)`, and let it put the next one",
    "signals": "do before and after a task what is to be done in a decorator, or by app.holdfast.around(…)",
    "control": "revoke by AsyncResult(id).revoke(), look at holdfast.Worker.list() and Queue.stats(), empty a queue by Queue.clear()",
    "events": "look at holdfast.Worker.list(), `holdfast queue`, or the log",
    "amqp": ROUTES,
    "worker_main": "start workers by: holdfast worker module:app.holdfast",
    "replace": "make a chain, or call the other task from a durable job: holdfast.current_job().call",
    "add_to_chord": "put all members at once, or let a durable job call them: holdfast.current_job().map",
    "send_event": "report how far it is by self.update_state",
    "connection": "use holdfast.Tasks, whose using(connection=…) puts a job in your transaction",
    "producer": "there are no producers of Kombu: remove it",
    "shadow": "give the task another name",
    "stamped_headers": "use the labels of holdfast.Queue.put",
}


def refused(what: str, name: str, known: Collection[str], *, remedy: str | None = None) -> ImproperlyConfigured:
    """The error for an option or a setting that is not supported; `remedy` is for those that have none of their own."""
    if name in REMEDIES or remedy is not None:
        return ImproperlyConfigured(f"{what}: {name!r} is not supported; {REMEDIES.get(name, remedy)}")
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return ImproperlyConfigured(f"{what}: {name!r} is not supported; {hint}supported: {', '.join(sorted(known))}")


def refuse_unknown(what: str, given: Mapping[str, Any], known: Collection[str], *, remedy: str | None = None) -> None:
    """Refuse the first option that is not supported. Nothing is ignored."""
    for name in given:
        if name not in known:
            raise refused(what, name, known, remedy=remedy)


def only(what: str, name: str, value: Any, allowed: Collection[Any], remedy: str) -> None:
    """Refuse a value of an option that other values of are supported."""
    if value not in allowed:
        raise ImproperlyConfigured(f"{what}: {name}={value!r} is not supported; {remedy}")
