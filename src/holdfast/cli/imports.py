"""The commands `holdfast import …`."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.opening import AsJson, StoreUrl
from holdfast.cli.owner import act_as_owner_of
from holdfast.cli.showing import print_result
from holdfast.wording import counted

imports: typer.Typer = typer.Typer(name="import", no_args_is_help=True, help="Take in what other libraries wrote.")


@imports.callback()
def group() -> None:
    """Take in what other libraries wrote."""


@imports.command()
def localqueue(
    file: Annotated[Path, typer.Argument(help="The SQLite file or LMDB folder; it is only read.")],
    *,
    url: StoreUrl = None,
    merge: Annotated[bool, typer.Option("--merge", help="Into a store that is not empty; what is in both is refused.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put what localqueue kept, its queues, attempts, ledger and results, into a store.

    Stop localqueue's workers first: a message that is leased is refused. After an interruption it continues when it is called again.
    """
    from holdfast.client import client_for
    from holdfast.surfaces.localqueue.legacy_import import import_localqueue

    act_as_owner_of(file, url)
    with client_for(url) as client:
        imported = import_localqueue(file, client, merge=merge)
    counts = f"{counted(imported.messages, 'message')} and {counted(imported.entries, 'record')}"
    print_result(imported, f"Imported {counts} from {imported.source} to {imported.target}.", as_json=as_json)
