"""The commands `holdfast import …`."""

from pathlib import Path
from typing import Annotated

import typer

imports: typer.Typer = typer.Typer(name="import", no_args_is_help=True, help="Take in what other libraries wrote.")


@imports.callback()
def group() -> None:
    """Take in what other libraries wrote."""


@imports.command()
def localqueue(
    file: Annotated[Path, typer.Argument(help="The SQLite file or LMDB folder; it is only read.")],
    *,
    to: Annotated[str | None, typer.Option("--to", help="The URL of the store; without it, HOLDFAST_URL or the default file.")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Into a store that is not empty; what is in both is refused.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Put what localqueue kept, its queues, attempts, ledger and results, into a store.

    Stop localqueue's workers first: a message that is leased is refused. Interrupted, it goes on where it was when it is called again.
    """
    from msgspec import json

    from holdfast import HoldfastError
    from holdfast.client import client_for
    from holdfast.surfaces.localqueue.importing import import_localqueue

    try:
        with client_for(to) as client:
            imported = import_localqueue(file, client, merge=merge)
    except (HoldfastError, ValueError) as error:
        typer.echo(f"Not imported: {error}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.encode(imported).decode())
    else:
        typer.echo(f"Imported {imported.messages:,} messages and {imported.entries:,} records from {imported.source} to {imported.target}.")
