"""The commands `holdfast job …` and `holdfast tasks`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins

from holdfast.cli.commands import NOTHING, DefaultGroup, NotFoundError
from holdfast.cli.known_names import refuse_unknown
from holdfast.cli.opening import AsJson, StoreUrl, connected, value_of
from holdfast.cli.showing import print_result, shown
from holdfast.errors import JobGone

if TYPE_CHECKING:
    from holdfast import Job


class JobGroup(DefaultGroup):
    """In which what names no command is the id of a job."""

    default = "show"


HELP = "Look at a job, cancel it, try it again, send it a signal. `holdfast job ID` is `holdfast job show ID`."

job: typer.Typer = typer.Typer(cls=JobGroup, no_args_is_help=True, help=HELP)

JobId = Annotated[str, typer.Argument(metavar="ID", help="The id of the job.")]
JobQueue = Annotated[str, typer.Option(help="Its queue.")]


@contextmanager
def reached_job(queue: str, job_id: str, url: str | None) -> "Iterator[Job[Any]]":
    """The job, while the block runs; NotFoundError if there is no such queue."""
    from holdfast import Job

    with connected(url) as client:
        refuse_unknown(client.store, "queue", queue)
        yield Job(queue, job_id, client=client)


@job.command()
def show(id: JobId, *, queue: JobQueue = "default", url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show how a job is: its state, attempts, times, worker, progress and last errors. Exits with 3 if nothing is known of it.

    The word `show` may be left out.
    """
    with reached_job(queue, id, url) as handle:
        found = handle.status()
    fields = [(name, _shown(value)) for name, value in to_builtins(found, builtin_types=(datetime,)).items() if name != "errors"]
    lines = [f"{name.replace('_', ' '):<13}{value}" for name, value in fields if value]
    for error in found.errors:
        lines += [
            "",
            f"attempt {error.attempt} at {_shown(error.at)} by {error.worker}",
            error.traceback or f"{error.type}: {error.message}",
        ]
    print_result(found, "\n".join(lines), as_json=as_json)
    if found.state == "gone":
        raise typer.Exit(NOTHING)


@job.command()
def cancel(
    id: JobId,
    *,
    queue: JobQueue = "default",
    force: Annotated[
        bool, typer.Option("--force", help="Remove a durable job that is not running, too, with all that is recorded of it.")
    ] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Remove a job that waits; ask the worker of one that runs, and a durable job, to end. Exits with 3 if there is no such job."""
    with reached_job(queue, id, url) as handle:
        outcome = handle.cancel(force=force)
    if outcome == "absent":
        raise NotFoundError(absent(queue, id))
    text = f"Job {id} is removed." if outcome == "cancelled" else f"Job {id} is asked to end; `holdfast job {id} --queue {queue}` shows it."
    print_result({"queue": queue, "id": id, "outcome": outcome}, text, as_json=as_json)


@job.command()
def retry(id: JobId, *, queue: JobQueue = "default", url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Give a job that is dead another chance, with fresh attempts. Exits with 3 if it is not a dead letter of the queue."""
    with reached_job(queue, id, url) as handle:
        state = None if handle.retry() else handle.status().state
    if state is not None:
        raise NotFoundError(absent(queue, id) if state == "gone" else f"job {id} of queue {queue!r} is {state}, and not a dead letter")
    print_result({"queue": queue, "id": id, "retried": True}, f"Job {id} went back to the line.", as_json=as_json)


@job.command()
def send(
    id: JobId,
    name: Annotated[str, typer.Argument(help="The name of the signal, for which the job calls job.wait(name).")],
    payload: Annotated[str, typer.Argument(help="What job.wait returns, as JSON; a text needs quotes.")] = "null",
    *,
    queue: JobQueue = "default",
    signal_id: Annotated[str | None, typer.Option("--id", help="The id of the signal; one of the same id is sent once.")] = None,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal to a durable job, which it gets now, or once it waits for it. Exits with 3 if there is no such job."""
    value = value_of(payload, "the payload")
    with reached_job(queue, id, url) as handle:
        try:
            sent = handle.send(name, value, id=signal_id)
        except JobGone:
            raise NotFoundError(absent(queue, id)) from None
    text = f"Sent {name} to job {id}." if sent else f"{name} was sent to job {id} before, with this id."
    print_result({"queue": queue, "id": id, "signal": name, "sent": sent}, text, as_json=as_json)


def absent(queue: str, job_id: str) -> str:
    """What is said of a job that is not there."""
    return f"there is no job {job_id} in queue {queue!r}: it has ended, or it is in another queue (--queue)"


def tasks(
    name: Annotated[str, typer.Argument(metavar="MODULE[:NAME]", help="Tasks by their name, or a module that has some.")],
    *,
    as_json: AsJson = False,
) -> None:
    """List the tasks that a module declares: their names, queues, parameters and schedules; no store is needed."""
    from holdfast.cli.worker import found, load, workers_of

    sys.path.insert(0, str(Path.cwd()))
    things = [found(name)] if ":" in name else workers_of(load(name))
    collections = [thing for thing in things if _is_tasks(thing)]
    if not collections:
        raise ValueError(f"{name} has no Tasks: declare some with app = Tasks(…) and @app.task")
    rows = [_row(app, task) for app in collections for task in app.tasks]
    text = shown(("task", "queue", "runs in", "version", "parameters", "schedules"), [[str(cell) for cell in row.values()] for row in rows])
    print_result(rows, text, as_json=as_json)


def _is_tasks(thing: Any) -> bool:
    from holdfast import Tasks, aio

    return isinstance(thing, Tasks | aio.Tasks)


def _row(app: Any, task: Any) -> dict[str, str]:
    from holdfast.workers.task_options import arguments_of

    schedules = [f"{one.name}: {one.rule}" for one in app.declared if one.task == task.name]
    return {
        "task": task.name,
        "queue": task.queue,
        "execution": task.options.execution,
        "version": str(task.options.versions[0]) if task.options.versions else "",
        "parameters": ", ".join(arguments_of(task.options).parameters),
        "schedules": ", ".join(schedules),
    }


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return "" if value is None else str(value)
