"""The command `holdfast prune-functions`: removes functions of earlier releases from a PostgreSQL schema."""

from typing import Annotated

import typer
from msgspec import Struct

from holdfast.cli.opening import AsJson, opened
from holdfast.cli.showing import print_result


class Pruned(Struct, frozen=True):
    """What became of the functions of a schema."""

    url: str
    removed: int


def prune_functions(
    url: Annotated[str, typer.Argument(help="The URL of the store.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Remove the functions of other releases from a PostgreSQL schema.

    Run it after an upgrade, with the new release, once no process of another release uses the store.
    """
    with opened(url) as store:
        if store.url.partition("://")[0] not in ("postgres", "postgresql"):
            raise ValueError(f"{store.url}: only PostgreSQL keeps functions in the store; there is nothing to prune")
        from holdfast.stores.postgres.store import prune_functions_at

        pruned = Pruned(store.url, prune_functions_at(url))
    print_result(pruned, f"{pruned.removed} functions of other releases were removed from {pruned.url}.", as_json=as_json)
