"""The commands `holdfast token create`, `list` and `revoke`: on the store itself, on the machine that has it."""

from typing import Annotated, Any

import typer
from msgspec import json, to_builtins

from holdfast.cli.commands import NotFoundError
from holdfast.cli.opening import AsJson, CreateStore, StoreUrl, opened, seconds_of, this_user
from holdfast.cli.showing import moment, print_result, shown
from holdfast.server.auth.scope_presets import durable_grants, worker_grants
from holdfast.server.auth.scopes import ADMIN, ANY
from holdfast.server.auth.tokens import Token, create_token, last_uses, list_tokens, listed, revoke_token
from holdfast.server.namespaces.names import DEFAULT_NAME

token: typer.Typer = typer.Typer(no_args_is_help=True, help="Tokens that a server asks for.")


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="A name for people.")],
    *,
    scope: Annotated[
        list[str] | None, typer.Option(help="KIND:PATTERN:VERBS, as in queue:orders-*:put,claim; * or admin. May be repeated.")
    ] = None,
    for_worker: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUE", help="Every scope that a worker of this queue needs; may be repeated, and beside --scope."),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="A namespace it is for, or a pattern; may be repeated. Without it the default one, for admin all."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="How long it is valid: 90s, 15m, 12h, 30d, 2w; without it, until revoked.")] = None,
    url: StoreUrl = None,
    create_store: CreateStore = False,
    as_json: AsJson = False,
) -> None:
    """Make a token and show it, once."""
    with opened(url, create=create_store) as store:
        expires_s = None if expires is None else seconds_of(expires)
        scopes = [*(scope or ()), *(grant.scope for queue in for_worker or () for grant in [*worker_grants(queue), *durable_grants(queue)])]
        namespaces = namespace or [ANY if ADMIN in scopes else DEFAULT_NAME]
        made, text = create_token(store, name, list(dict.fromkeys(scopes)), namespaces, expires_s, by=this_user())
    if as_json:
        typer.echo(json.encode({"token": text, **_told(made)}).decode())
        return
    # The token alone on stdout, so that it can be piped to where it is kept.
    typer.echo(text)
    typer.echo(f"This is token {made.id}, and it is shown only now: only its hash is kept.", err=True)


@token.command("list")
def list_(*, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the valid tokens, and when each was last used, to ten minutes."""
    with opened(url) as store:
        uses = last_uses(store)
        tokens = [listed(each, uses.get(each.id)) for each in list_tokens(store)]
    rows = [
        (
            each.id,
            each.name,
            ", ".join(each.namespaces),
            ", ".join(each.scopes),
            *map(moment, (each.created_at, each.expires_at, each.last_used_at)),
        )
        for each in tokens
    ]
    heads = ("id", "name", "namespaces", "scopes", "made", "expires", "last used")
    text = shown(heads, rows) if rows else f"No valid tokens in {store.url}."
    print_result(tokens, text, as_json=as_json)


@token.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help="Its id, as `list` shows it.")], *, url: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Revoke a token; when this returns, no server accepts it any more."""
    with opened(url) as store:
        if not revoke_token(store, token_id, by=this_user()):
            raise NotFoundError("there is no token with this id: `holdfast token list` shows those there are")
    print_result({"revoked": token_id}, f"Token {token_id} is revoked.", as_json=as_json)


def _told(each: Token) -> dict[str, Any]:
    """All of it but what it is told apart by."""
    told: dict[str, Any] = to_builtins(each)
    del told["digest"]
    return told
