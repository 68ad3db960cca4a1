"""The typer application to which subcommands are added."""

from typing import Annotated

import rich  # noqa: F401  imported here so that a missing extra is noticed before a command has begun
import typer

from holdfast import __version__
from holdfast.cli.audit import audit
from holdfast.cli.commands import SETTINGS, Group, apply_to
from holdfast.cli.copy import copy
from holdfast.cli.demo.command import demo
from holdfast.cli.dicts import dicts
from holdfast.cli.doctor.command import doctor
from holdfast.cli.imports import imports
from holdfast.cli.job import job, tasks
from holdfast.cli.leases.leader import leader
from holdfast.cli.leases.lock import lock
from holdfast.cli.localqueue import localqueue
from holdfast.cli.lower_fences import lower_fences
from holdfast.cli.namespace import namespace
from holdfast.cli.prune_functions import prune_functions
from holdfast.cli.queue import queue
from holdfast.cli.restore import restore
from holdfast.cli.schedule import schedule
from holdfast.cli.serve import serve
from holdfast.cli.token import token
from holdfast.cli.worker import worker

app: typer.Typer = typer.Typer(
    name="holdfast", cls=Group, context_settings=SETTINGS, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def print_version(asked: bool) -> None:  # noqa: FBT001  typer calls an option's callback with its value
    """Print `--version` and exit."""
    if asked:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def holdfast(
    *,
    version: Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Queues, dicts, locks and elections with leases and fencing tokens."""


app.add_typer(imports)
app.add_typer(localqueue)
app.command()(copy)
app.command()(demo)
app.command()(doctor)
app.command()(job)
app.command()(lower_fences)
app.command()(prune_functions)
app.command()(restore)
app.command()(serve)
app.command()(tasks)
app.command()(worker)
app.add_typer(queue, name="queue")
app.add_typer(dicts, name="dict")
app.add_typer(lock, name="lock")
app.add_typer(leader, name="leader")
app.add_typer(schedule, name="schedule")
app.add_typer(token, name="token")
app.add_typer(namespace, name="namespace")
app.command()(audit)
apply_to(app)
