"""The typer application: a table of commands, each of which is imported when it is called."""

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer
import typer.main
from typer.core import TyperCommand

from holdfast import __version__
from holdfast.cli.commands import SETTINGS, Group, apply_to

if find_spec("rich") is None:  # A missing extra is noticed before a command has begun.
    raise ModuleNotFoundError("the command line needs rich", name="rich")

COMMANDS: Final = {
    "queue": ("queue:queue", "look at queues, put, claim and settle messages, steer them"),
    "dict": ("dicts:dicts", "read, change and follow the entries of shared dicts"),
    "lock": ("leases.lock:lock", "run a program under a lock; list and break leases"),
    "leader": ("leases.leader:leader", "run a program while elected; see who leads"),
    "schedule": ("schedule:schedule", "messages that are put by a rule, again and again"),
    "worker": ("worker:worker", "run workers until they are stopped; list those that live"),
    "tasks": ("job:tasks", "list the tasks that a module declares"),
    "job": ("job:job", "look at a job, cancel it, try it again, send to it"),
    "watch": ("watch:watch", "follow what happens in a store, live"),
    "top": ("top.command:top", "queues, workers and rates, live in the terminal"),
    "doctor": ("doctor.command:doctor", "find what is wrong, each with evidence and a remedy"),
    "check": ("check:check", "read a whole store, and compare it with its counts"),
    "backup": ("backup:backup", "copy the file of a store while it is in use"),
    "restore": ("restore:restore", "put a backup in place; no token is given out twice"),
    "export": ("export:export", "write a store as lines of JSON"),
    "import": ("imports:imports", "read an export, or files of another library"),
    "copy": ("copy:copy", "move everything to another store"),
    "serve": ("serve:serve", "serve a store over HTTP, with a dashboard"),
    "mcp": ("mcp.command:mcp", "serve a store to an AI assistant, by MCP"),
    "token": ("token:token", "make, list and revoke the tokens of servers"),
    "namespace": ("namespace:namespace", "namespaces of a server, and their quotas"),
    "audit": ("audit:audit", "show the acts of administrators"),
    "config": ("config:config", "show which settings are in force, and why"),
    "completion": ("completion:completion", "print the completion script of a shell"),
    "lower-fences": ("lower_fences:lower_fences", "repair the fences of a dict"),
    "prune-functions": ("prune_functions:prune_functions", "remove functions of other releases from PostgreSQL"),
    "localqueue": ("localqueue:localqueue", "localqueue's command line, on any store"),
    "demo": ("demo.command:demo", "see workers killed and paused, and nothing lost"),
}
"""Where each command is, in holdfast.cli, and what the list of commands says of it."""


class Commands(Group):
    """All commands; one that is called takes the place of the line that the help shows for it."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: dict[str, Any] = {name: TyperCommand(name, help=about) for name, (_, about) in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = load(args[0])
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """Import a command, or a group of commands."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    thing = getattr(import_module(f"holdfast.cli.{module}"), attribute)
    around = typer.Typer(rich_markup_mode=None)
    if isinstance(thing, typer.Typer):
        around.add_typer(thing, name=name)
    else:
        around.command(name)(thing)
    apply_to(around)
    return typer.main.get_group(around).commands[name]


# Help without rich: it would take half of the time that `holdfast --help` takes.
app: typer.Typer = typer.Typer(
    name="holdfast",
    cls=Commands,
    context_settings=SETTINGS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
