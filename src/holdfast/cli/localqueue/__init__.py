"""The commands `holdfast localqueue …`: localqueue's own command line, on any store.

What is answered is JSON, one value per line; `--json` is accepted and changes nothing.
"""

from typing import Annotated

import typer

from holdfast.cli.localqueue.configuration import config
from holdfast.cli.localqueue.configuration import retry as retries
from holdfast.cli.localqueue.inspection import dead, health, requeue_dead, stats
from holdfast.cli.localqueue.messages import add, inspect, pop, purge, release, settle, size
from holdfast.cli.localqueue.process_messages import work

localqueue: typer.Typer = typer.Typer(name="localqueue", no_args_is_help=True, help="localqueue's command line, on any store.")
queue: typer.Typer = typer.Typer(name="queue", no_args_is_help=True, help="Put, lease, settle and handle messages.")


def print_version(asked: bool) -> None:  # noqa: FBT001  typer calls an option's callback with its value
    """Print `--version` and exit."""
    if asked:
        from holdfast.surfaces.localqueue import __version__

        typer.echo(__version__)
        raise typer.Exit


@localqueue.callback()
def group(
    *,
    version: Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show localqueue's version.")] = False,
) -> None:
    """Work on the queues of localqueue's API, on any store."""


for _command in (add, pop, inspect, release, size, stats, health, dead, purge):
    queue.command()(_command)
queue.command("ack", help="Remove a message: it is done.")(settle)
queue.command("dead-letter", help="Take a message out of delivery.")(settle)
queue.command("requeue-dead")(requeue_dead)
queue.command("process")(work)
queue.command("exec")(work)
localqueue.add_typer(queue)
localqueue.add_typer(retries)
localqueue.add_typer(config)
