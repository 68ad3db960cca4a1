"""The commands `holdfast job` and `holdfast tasks`."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from holdfast.cli.opening import AsJson, StoreUrl, reached
from holdfast.cli.showing import print_result, shown


def job(
    id: Annotated[str, typer.Argument(help="The id of the job.")],
    *,
    queue: Annotated[str, typer.Option(help="Its queue.")] = "default",
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show how a job is: its state, attempts, times, worker, progress and last errors."""
    from holdfast import ControlPlaneClient, Job

    with reached(url) as store:
        found = Job(queue, id, client=ControlPlaneClient.on(store)).status()
    fields = [(name, _shown(value)) for name, value in to_builtins(found, builtin_types=(datetime,)).items() if name != "errors"]
    lines = [f"{name.replace('_', ' '):<13}{value}" for name, value in fields if value]
    for error in found.errors:
        lines += [
            "",
            f"attempt {error.attempt} at {_shown(error.at)} by {error.worker}",
            error.traceback or f"{error.type}: {error.message}",
        ]
    print_result(found, "\n".join(lines), as_json=as_json)


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
