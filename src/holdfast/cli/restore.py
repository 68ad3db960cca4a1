"""The command `holdfast restore`: what a store cannot notice by itself after a backup took its place."""

from typing import Annotated

import typer
from msgspec import Struct, json

from holdfast.cli.opening import AsJson, opened
from holdfast.commands import BeginImport, EndImport, Survey
from holdfast.commands.copying import Surveyed
from holdfast.stores import Store

SOURCE = "a restored backup"
"""What the store remembers of it while it is under way."""


class Restored(Struct, frozen=True):
    """What became of the counter of a store."""

    url: str
    before: int
    """The newest number that the store knew of."""
    after: int
    """Every token, revision and event from now on has a larger one."""


def restore(
    url: Annotated[str, typer.Argument(help="The URL of the store.")],
    *,
    above: Annotated[int, typer.Option("--above", min=0, help="A token that was given out before; new ones are larger.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Raise the tokens of a store whose data is a restored backup, and let every watch begin anew.

    Run it after the backup is in place and before the programs start again. It loses nothing, and running it twice does no harm.
    """
    with opened(url) as store:
        restored = raise_numbers(store, above)
    if as_json:
        typer.echo(json.encode(restored).decode())
        return
    typer.echo(
        f"Tokens, revisions and events of {restored.url} go on above {restored.after}; the newest was {restored.before}.\n"
        "Every watch that goes on from an earlier index gets Compacted and begins anew. Messages, entries and leases are as they were."
    )


def raise_numbers(store: Store, above: int = 0) -> Restored:
    """Go on above the clock, the newest number and `above`: what a copy into this store would do, without anything to copy."""
    found = store.execute(Survey())
    number = max(found.now, found.latest, above)
    store.execute(BeginImport(SOURCE, Surveyed(found.now, number, 0), merge=True))
    store.execute(EndImport())
    return Restored(store.url, found.latest, number)
