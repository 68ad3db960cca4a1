"""Shared by all commands: help texts, older names of options, and errors of the user.

A mistake is one sentence on standard error and an exit code; an unexpected error keeps its traceback.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Final

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast.cli.project_settings import adopt_project_url
from holdfast.errors import ClaimLost, HoldfastError, LeaseLost, MissingExtra, ScheduleMissing, StoreMissing

FAILED: Final = 1
"""The exit code of a command that could not do what it was asked."""
REFUSED: Final = 2
"""Of one that was asked for what cannot be meant, or lacks a package."""
NOTHING: Final = 3
"""Of one that found nothing: no message to claim, no entry under the key, a lock that is not free."""
LOST: Final = 4
"""Of one whose claim or lease was lost, or whose compare-and-set met another value."""
INTERRUPTED: Final = 130
"""Of one that Ctrl-C ended."""

OLDER_NAMES: Final = {"store": "url", "to": "url"}
"""Names that options had before, and are still understood."""

LAST: Final = ("url", "store_path", "store", "create_store", "progress", "log_events", "as_json")
"""Options that most commands have, which their help shows behind their own."""

SETTINGS: Final[dict[str, Any]] = {"token_normalize_func": lambda name: OLDER_NAMES.get(name, name)}


class _Help:
    """Help in which a flag takes no value, and arguments are in capitals."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        rest = pieces[1 + len(arguments) :]
        return [*pieces[:1], *map(_piece, arguments), *rest]


def _piece(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).removesuffix("...")
    return f"{name if argument.required else f'[{name}]'}{'' if argument.nargs == 1 else '...'}"


class Group(_Help, TyperGroup):
    """A group of commands."""


class DefaultGroup(Group):
    """A group in which what names no command of it is given to the one that is meant most often."""

    default: ClassVar[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_named = not args or args[0] in self.commands or args[0] in ctx.help_option_names
        parsed: list[str] = super().parse_args(ctx, args if is_named else [self.default, *args])
        return parsed


class NotFoundError(HoldfastError):
    """What was asked for is not there."""


class Command(_Help, TyperCommand):
    """A command, whose known failures are reported in one sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            if "url" in ctx.params and ctx.params["url"] is None:
                adopt_project_url()
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # No program reads on, as with `| head`: click ends the command with 1, without a word.
        except (HoldfastError, ValueError, OSError) as error:
            can_create = isinstance(error, StoreMissing) and "create_store" in ctx.params
            said = f"{sentence(error)}{', or create the store with --create-store' if can_create else ''}"
            raise ended(ctx.command_path.removeprefix("holdfast "), said, code_of(error)) from None
        except KeyboardInterrupt:
            raise ended(ctx.command_path.removeprefix("holdfast "), "interrupted", INTERRUPTED) from None


def ended(command: str, reason: object, code: int) -> typer.Exit:
    """Say why the command ends, and give what ends it with the code."""
    typer.echo(f"holdfast {command}: {reason}", err=True)
    return typer.Exit(code)


def code_of(error: Exception) -> int:
    """The exit code for a failure that is known."""
    if isinstance(error, NotFoundError | ScheduleMissing):
        return NOTHING
    if isinstance(error, ClaimLost | LeaseLost):
        return LOST
    return REFUSED if isinstance(error, ValueError | MissingExtra) else FAILED


def sentence(error: Exception) -> str:
    """What the error says, without numbers of the operating system and in one line."""
    said = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror and error.filename else str(error)
    return " ".join(said.split()) or type(error).__name__


def apply_to(app: typer.Typer) -> None:
    """Make every command and group of the application one of these."""
    for command in app.registered_commands:
        command.cls = Command
        if command.callback is not None and command.callback.__code__.co_flags & inspect.CO_VARKEYWORDS:
            show_listed(command.callback)
    for group in app.registered_groups:
        own = None if group.typer_instance is None else group.typer_instance.info.cls
        group.cls = own if isinstance(own, type) and issubclass(own, Group) else Group
        if group.typer_instance is not None:
            apply_to(group.typer_instance)


def show_listed(command: Callable[..., Any]) -> None:
    """Let typer see the options that `**options: Unpack[Options]` lists; they are None, or 0, False and so on, if they are not given."""
    from holdfast.arguments.options import show_options

    signature = inspect.signature(show_options(command))
    given = [one.replace(default=one.annotation.__origin__()) if one.default is ... else one for one in signature.parameters.values()]
    command.__signature__ = signature.replace(parameters=sorted(given, key=lambda one: one.name in LAST))  # type: ignore[attr-defined]
