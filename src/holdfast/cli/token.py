"""The commands `holdfast token create|list|revoke`."""

import getpass
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.connect import connect_shared
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.commands import Command

REFUSED = 2
DAY_S = 86_400.0

token: typer.Typer = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of a server.")

Store = Annotated[str | None, typer.Option("--store", help="The store that is served: its URL; as for `holdfast serve`.")]


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="What logs and this list call it.")],
    scope: Annotated[list[str], typer.Option(help="What it allows: kind:pattern:verbs, as in queue:jobs-*:put,claim; or admin.")],
    *,
    namespace: Annotated[list[str] | None, typer.Option(help="Allow only names that begin with this and a slash. Repeat it.")] = None,
    days: Annotated[float | None, typer.Option(min=0.0, help="After how many days it ends; without it never.")] = None,
    store: Store = None,
) -> None:
    """Make a token, and print it: this once, for only its hash is kept."""
    from holdfast.server.tokens import Token, keep

    try:
        expires_in_s = None if days is None else days * DAY_S
        made, text = Token.make(name, scope, namespaces=namespace or (), now=time.time(), expires_in_s=expires_in_s)
    except ValueError as error:
        raise _refusal(str(error)) from None
    _do(store, keep(made), "create token", f"{made.id} {made.name}")
    typer.echo(text)


@token.command(name="list")
def list_(*, store: Store = None) -> None:
    """List the tokens: id, name, end, namespaces and scopes."""
    from holdfast.server.tokens import find, token_of

    for entry in _opened(store).execute(find()).entries:
        each = token_of(entry)
        end = "never ends" if each.expires_at is None else f"until {datetime.fromtimestamp(each.expires_at, UTC):%Y-%m-%d %H:%M} UTC"
        inside = f" in {','.join(each.namespaces)}" if each.namespaces else ""
        typer.echo(f"{each.id}  {each.name}  {end}{inside}  {' '.join(each.scopes)}")


@token.command()
def revoke(token_id: Annotated[str, typer.Argument(help="The id, as `list` shows it.")], *, store: Store = None) -> None:
    """Revoke a token: a server that runs refuses it at once."""
    from holdfast.server.tokens import revoke as forget

    _do(store, forget(token_id), "revoke token", token_id)


def _do(store: str | None, command: "Command[Any]", what: str, to: str) -> None:
    from holdfast.server.audit import Act, audited, record

    try:
        _opened(store).execute(audited(command, [record(Act(f"{getpass.getuser()} on the host", what, to))]))
    except HoldfastError as error:
        raise _refusal(str(error)) from None


def _opened(store: str | None) -> Any:
    try:
        return connect_shared(store)
    except (ValueError, HoldfastError) as error:
        raise _refusal(str(error)) from None


def _refusal(problem: str) -> typer.Exit:
    typer.echo(f"holdfast token: {problem}", err=True)
    return typer.Exit(REFUSED)
