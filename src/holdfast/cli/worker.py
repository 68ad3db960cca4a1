"""The command `holdfast worker`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from holdfast import Worker

Name = Annotated[list[str], typer.Argument(metavar="MODULE:NAME", help="Workers, or with --queue plain functions, by their names.")]


def worker(
    names: Name,
    *,
    url: Annotated[str | None, typer.Option(help="The store; by default that of each worker, else HOLDFAST_URL.")] = None,
    queue: Annotated[str | None, typer.Option(help="The queue of plain functions.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="How many jobs of each run at once.")] = None,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when nothing is due and nothing runs.")] = False,
) -> None:
    """Run workers until SIGTERM or Ctrl-C: jobs may then finish within the grace time, the rest is given back."""
    import logging

    from holdfast.workers.fleet import run_workers

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # As `python -m` does: modules are looked for where the command is called.
    sys.path.insert(0, str(Path.cwd()))
    try:
        workers = [make(found(name), name, url=url, queue=queue, concurrency=concurrency) for name in names]
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        typer.echo(f"No worker: {error}", err=True)
        raise typer.Exit(2) from None
    run_workers(workers, until_empty=until_empty)


def found(name: str) -> Any:
    """What a name like `package.module:thing` stands for."""
    from importlib import import_module

    module, mark, path = name.partition(":")
    if not mark or not path:
        raise ValueError(f"{name!r} names nothing: write package.module:name")
    thing: Any = import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    return thing


def make(thing: Any, name: str, *, url: str | None, queue: str | None, concurrency: int | None) -> "Worker[Any, Any, Any]":
    """A worker with what the command line says beyond, or instead of, what it says itself."""
    from holdfast import ControlPlaneClient, Worker

    options: dict[str, Any] = {} if concurrency is None else {"concurrency": concurrency}
    if url is not None:
        options["client"] = ControlPlaneClient(url)
    if isinstance(thing, Worker):
        return thing.changed(**options)
    if queue is None:
        raise ValueError(f"{name} is no worker: decorate it with @worker(...), or say which --queue it is for")
    return Worker(thing, queue, **options)
