"""The commands `holdfast worker …`: run, ls."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.commands import DefaultGroup
from holdfast.cli.living_workers import ls
from holdfast.cli.logs import LogJson, log_to_stderr

if TYPE_CHECKING:
    from holdfast import Worker

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="MODULE[:NAME]", help="Workers and Tasks by their names, all of a module, or with --queue plain functions by their names."
    ),
]


class Level(StrEnum):
    """How much is logged."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class WorkerGroup(DefaultGroup):
    """In which what names no command names the workers to run."""

    default = "run"


HELP = "Run workers, and list those that live. `holdfast worker MODULE` is `holdfast worker run MODULE`."

worker: typer.Typer = typer.Typer(cls=WorkerGroup, no_args_is_help=True, help=HELP)
worker.command()(ls)


@worker.command()
def run(
    names: Names,
    *,
    url: Annotated[str | None, typer.Option(help="The store; by default that of each worker, else HOLDFAST_URL.")] = None,
    queue: Annotated[str | None, typer.Option(help="The queue of plain functions.")] = None,
    queues: Annotated[
        str | None,
        typer.Option(help="The queues of Tasks: in order, as in high,default, or with weights, as in a=3,b=1; by default all alike."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="How many jobs of each run at once.")] = None,
    lease_s: Annotated[
        float | None, typer.Option(help="How long after the death of this worker its jobs are handed out again; by default 60 seconds.")
    ] = None,
    grace_s: Annotated[
        float | None, typer.Option(help="How long jobs may go on once the worker is told to stop; by default 30 seconds.")
    ] = None,
    schedules: Annotated[bool, typer.Option("--schedules/--no-schedules", help="Whether to put the runs of schedules.")] = True,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when nothing is due and nothing runs.")] = False,
    probe: Annotated[
        str | None,
        typer.Option(metavar="[HOST]:PORT", help="Serve /livez, /readyz and /metrics there, as in :8080, for Kubernetes and Prometheus."),
    ] = None,
    log_level: Annotated[
        Level, typer.Option(help="How much is logged: debug, info (a line per job), warning (failures) or error.")
    ] = Level.info,
    as_json: LogJson = False,
) -> None:
    """Run workers until SIGTERM or Ctrl-C: jobs may then finish within the grace time, the rest is given back.

    The word `run` may be left out.
    """
    from holdfast.cli.probe import probed
    from holdfast.cli.run_workers import run_workers

    log_to_stderr(log_level.value.upper(), as_json=as_json)
    # As `python -m` does: modules are looked for where the command is called.
    sys.path.insert(0, str(Path.cwd()))
    given = {"concurrency": concurrency, "lease_s": lease_s, "grace_s": grace_s, "schedules": None if schedules else False}
    options = {name: value for name, value in given.items() if value is not None}
    chosen = None if queues is None else queues_of(queues)
    workers = [made for name in names for made in make_all(name, url=url, queue=queue, queues=chosen, options=options)]
    with probed(workers, probe):
        run_workers(workers, until_empty=until_empty)


def queues_of(text: str) -> list[str] | dict[str, float]:
    """The queues of an option: in order, or with weights; ValueError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    weighted = [part.partition("=") for part in parts]
    if not any(sign for _, sign, _ in weighted):
        return parts
    try:
        return {name: float(weight) for name, _, weight in weighted}
    except ValueError:
        raise ValueError(f"--queues {text} is neither an order, as in high,default, nor has it a weight for each, as in a=3,b=1") from None


def make_all(
    name: str,
    *,
    url: str | None = None,
    queue: str | None = None,
    queues: list[str] | dict[str, float] | None = None,
    options: dict[str, Any] | None = None,
) -> "list[Worker[Any, Any, Any]]":
    """The workers that a name stands for, with what the command line says beyond, or instead of, what they say themselves."""
    from holdfast import ControlPlaneClient

    options = dict(options or {})
    if url is not None:
        options["client"] = ControlPlaneClient(url)
    if ":" in name:
        return [make(found(name), name, queue, options, queues)]
    workers = workers_of(load(name))
    if not workers:
        raise ValueError(
            f"module {name!r} has no workers: decorate a function with @worker(...), or with @app.task of an app = Tasks(...), "
            f"or name a plain one as {name}:NAME"
        )
    return [make(one, name, queue, options, queues) for one in workers]


def found(name: str) -> Any:
    """What a name like `package.module:thing` stands for."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise ValueError(f"{name!r} names nothing: write package.module:name")
    thing: Any = load(module)
    for part in path.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            raise ValueError(f"{module!r} has no {path!r}; its workers are: {shown(load(module)) or 'none'}") from None
    return thing


def load(module: str) -> Any:
    """The module; ValueError, with the place, for whatever keeps it from being imported."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"there is no module {error.name!r} in {Path.cwd()} or where Python looks for modules") from None
        raise ValueError(f"module {module!r} needs the module {error.name!r}, which is not installed") from None
    except Exception as error:  # noqa: BLE001 - foreign code
        raise ValueError(f"module {module!r} cannot be imported: {place_of(error)}: {type(error).__name__}: {error}") from None


def place_of(error: Exception) -> str:
    """The file and line where an import failed."""
    from traceback import extract_tb

    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    frames = [frame for frame in extract_tb(error.__traceback__) if "/holdfast/" not in frame.filename]
    return f"{frames[-1].filename}, line {frames[-1].lineno}"


def workers_of(module: Any) -> list[Any]:
    """The workers and collections of tasks at the top of a module, each once."""
    from holdfast import Tasks, Worker, aio

    kinds = (Worker, aio.Worker, Tasks, aio.Tasks)
    found: dict[int, Any] = {id(thing): thing for thing in vars(module).values() if isinstance(thing, kinds)}
    return list(found.values())


def shown(module: Any) -> str:
    """The names of a module's workers."""
    workers = workers_of(module)
    return ", ".join(sorted(name for name, thing in vars(module).items() if any(thing is worker for worker in workers)))


def make(
    thing: Any, name: str, queue: str | None, options: dict[str, Any], queues: list[str] | dict[str, float] | None = None
) -> "Worker[Any, Any, Any]":
    """A worker for threads: as it is defined, or of a plain function."""
    from holdfast import Tasks, Worker, aio

    if isinstance(thing, Tasks | aio.Tasks):
        of_process = {option: given for option, given in options.items() if option != "client"}
        return Worker.of_orders(thing.worker(queues=queues, **of_process).orders, client=options.get("client", thing.client))
    if queues is not None:
        raise ValueError(f"--queues chooses among the queues of Tasks, and {name} is not one: leave it out")
    if isinstance(thing, Worker):
        return thing.changed(**options)
    if isinstance(thing, aio.Worker):
        return Worker.of_orders(thing.orders, client=thing.client).changed(**options)
    if queue is None:
        raise ValueError(f"{name} is not a worker: decorate it with @worker(...), or say which --queue it is for")
    try:
        return Worker(thing, queue, **options)
    except TypeError as error:
        raise ValueError(f"{name} cannot be the function of a worker: {error}") from None
