"""The command `holdfast restore`, to run after a backup was restored."""

from typing import Annotated

import typer
from msgspec import Struct

from holdfast._sync.flows.copying import raise_numbers
from holdfast.cli.opening import AsJson, opened
from holdfast.cli.showing import print_result


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
    """Raise the tokens of a store whose data is a restored backup, and let every watch start again.

    Run it after the backup is in place and before the programs start again. It loses nothing, and running it twice does no harm.
    """
    with opened(url) as store:
        restored = Restored(store.url, *raise_numbers(store, above))
    print_result(
        restored,
        f"Tokens, revisions and events of {restored.url} continue above {restored.after}; the newest was {restored.before}.\n"
        "Every watch that continues from an earlier index gets Compacted and starts again. Messages, entries and leases are as they were.",
        as_json=as_json,
    )
