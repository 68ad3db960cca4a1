"""The commands that steer a queue: pause, resume, redrive, cancel, purge."""

from typing import Annotated, Unpack

import typer

from holdfast.cli.commands import NOTHING
from holdfast.cli.known_names import known_queue, refuse_unknown
from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.progress import Lines, progress_bar
from holdfast.cli.queue.messages import FoundBy, QueueName, as_data, filter_options
from holdfast.cli.showing import print_result
from holdfast.wording import counted

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of messages; without any, all that the options find.")]


def pause(queue: QueueName, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Hand nothing out until `resume`. Puts, and work that has begun, go on."""
    with known_queue(queue, url) as handle:
        handle.pause()
    print_result({"queue": queue, "paused": True}, f"Queue {queue} is paused.", as_json=as_json)


def resume(queue: QueueName, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Hand messages out again."""
    with known_queue(queue, url) as handle:
        handle.resume()
    print_result({"queue": queue, "paused": False}, f"Queue {queue} is resumed.", as_json=as_json)


def redrive(
    queue: QueueName,
    ids: Ids = None,
    *,
    to: Annotated[str | None, typer.Option("--to-queue", help="The queue is a dead-letter queue: its messages go to this one.")] = None,
    rate_per_s: Annotated[float | None, typer.Option(help="Space them out: so many are due per second.")] = None,
    url: StoreUrl = None,
    progress: Lines = False,
    as_json: AsJson = False,
    **found_by: Unpack[FoundBy],
) -> None:
    """Give dead letters another chance: those named, or all that the options find, or all; in steps of 1,000.

    Exits with 3 if none of those named is there.
    """
    from holdfast import Queue

    with connected(url) as client, progress_bar("redriven", lines=progress, quiet=as_json) as show:
        for name in (queue,) if to is None else (queue, to):
            refuse_unknown(client.store, "queue", name)
        done = Queue.from_name(queue, client=client).redrive(
            ids or None, to=to, rate_per_s=rate_per_s, on_progress=show, **filter_options(found_by)
        )
    kept = f"; {counted(len(done.kept), 'message')} stayed, because newer work has the key or the id" if done.kept else ""
    print_result(as_data(done), f"{counted(done.count, 'message')} went back to the line{kept}.", as_json=as_json)
    if ids and not done.count and not done.kept:
        raise typer.Exit(NOTHING)


def cancel(
    queue: QueueName,
    ids: Ids = None,
    *,
    state: Annotated[str, typer.Option(help="The state of those that the options find: ready, dead or buffered.")] = "ready",
    url: StoreUrl = None,
    progress: Lines = False,
    as_json: AsJson = False,
    **found_by: Unpack[FoundBy],
) -> None:
    """Remove messages that are not claimed: those named, or those that the options find; in steps of 1,000.

    Exits with 3 if none of those named is there.
    """
    with known_queue(queue, url) as handle, progress_bar("removed", lines=progress, quiet=as_json) as show:
        done = handle.cancel(ids or None, state=state, on_progress=show, **filter_options(found_by))  # type: ignore[arg-type]  # the command checks the state
    print_result(as_data(done), f"{counted(done.count, 'message')} removed.", as_json=as_json)
    if ids and not done.count:
        raise typer.Exit(NOTHING)


def purge(
    queue: QueueName,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the queue and its settings too.")] = False,
    url: StoreUrl = None,
    progress: Lines = False,
    as_json: AsJson = False,
) -> None:
    """Remove every message of a queue; claims on them are lost. Asks first, unless `--yes` is given."""
    with known_queue(queue, url) as handle:
        if not yes:
            typer.confirm(f"Remove every message of queue {queue}?", abort=True, err=True)
        with progress_bar("removing messages", lines=progress, quiet=as_json) as show:
            show(0)  # It is one step, whose end is all that can be seen of it.
            done = handle.delete() if drop else handle.clear()
            show(done.count, done.count)
    print_result(as_data(done), f"{counted(done.count, 'message')} removed.", as_json=as_json)
