"""The command `holdfast copy`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from holdfast.results import CopyProgress, CopyResult


def copy(
    source: Annotated[str, typer.Argument(help="The URL of the store to move from.")],
    target: Annotated[str, typer.Argument(help="The URL of the store to move to, which must be empty.")],
    *,
    merge: Annotated[bool, typer.Option("--merge", help="Move into a store that is not empty; what is in both is refused.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Show no progress, and print the result as JSON.")] = False,
) -> None:
    """Move every queue and dict to another store, and seal the source.

    Nobody may hold a claim or a lease in the source, and nobody may write to it meanwhile. Interrupted, it goes on where it was when it is
    called again.
    """
    from holdfast import HoldfastError

    try:
        result = copy_quietly(source, target, merge=merge) if as_json else copy_visibly(source, target, merge=merge)
    except (HoldfastError, ValueError) as error:
        typer.echo(f"Not moved: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted: the source is as it was. Call it again to go on from here.", err=True)
        raise typer.Exit(130) from None
    typer.echo(as_text(result, as_json=as_json))


def copy_quietly(source: str, target: str, *, merge: bool) -> "CopyResult":
    """Copy without a word."""
    from holdfast import copy as copy_store

    return copy_store(source, target, merge=merge)


def copy_visibly(source: str, target: str, *, merge: bool) -> "CopyResult":
    """Copy behind a progress bar, which a terminal shows and a file does not."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from holdfast import copy as copy_store

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("counting", total=None)
        return copy_store(source, target, merge=merge, progress=lambda progress: show(bar, task, progress))


def show(bar: "Progress", task: "TaskID", progress: "CopyProgress") -> None:
    """Move the bar on."""
    from rich.markup import escape

    bar.update(task, description=escape(progress.what), completed=progress.done, total=progress.total)


def as_text(result: "CopyResult", *, as_json: bool) -> str:
    """The result for a script, or for a person."""
    from msgspec import json

    if as_json:
        return json.encode(result).decode()
    return (
        f"Moved {result.messages:,} messages of {result.queues:,} queues and {result.entries:,} entries of {result.dicts:,} dicts "
        f"to {result.target}; every page was compared (checksum {result.checksum}).\n"
        f"{result.source} is sealed: whoever opens it is told the new URL."
    )
