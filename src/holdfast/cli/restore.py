"""The command `holdfast restore`: puts a backup in place, and raises the numbers of a store whose data was replaced."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from holdfast._sync.flows.copying import raise_numbers
from holdfast.cli.opening import AsJson, opened
from holdfast.cli.owner import act_as_owner_of
from holdfast.cli.progress import Lines, Show, progress_bar
from holdfast.cli.showing import print_result
from holdfast.commands import Survey
from holdfast.connect import backups_of, file_of
from holdfast.errors import HoldfastError


class Restored(Struct, frozen=True):
    """What became of the counter of a store."""

    url: str
    before: int
    """The newest number that the store knew of."""
    after: int
    """Every token, revision and event from now on has a larger one."""
    kept: str | None = None
    """Where the file is that the backup took the place of."""


def restore(
    url: Annotated[str, typer.Argument(help="The URL of the store.")],
    *,
    backup: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="The backup to put in place first; the file that was there is kept.")
    ] = None,
    above: Annotated[int, typer.Option("--above", min=0, help="A token that was given out before; new ones are larger.")] = 0,
    progress: Lines = False,
    as_json: AsJson = False,
) -> None:
    """Raise the tokens of a store whose data is a restored backup, and let every watch start again.

    With --from it puts a backup of a SQLite or LMDB store in place itself. Else run it after the backup is in place and before the programs
    start again. It loses nothing, and running it twice does no harm.
    """
    with _quiet(), progress_bar("copying bytes", lines=progress, quiet=as_json) as show:
        restored = _restored(url, backup, above, show)
    kept = restored.kept
    text = (
        f"Tokens, revisions and events of {restored.url} continue above {restored.after}; the newest was {restored.before}.\n"
        "Every watch that continues from an earlier index gets Compacted and starts again. Messages, entries and leases are as they were."
    )
    print_result(restored, text if kept is None else f"{text}\nThe file that was there is kept: {kept}", as_json=as_json)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning that the file is a copy, and what to run then."""
    log = logging.getLogger("holdfast.stores.files.replaced")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _restored(url: str, backup: Path | None, above: int, show: Show) -> Restored:
    kept = None
    if backup is not None:
        act_as_owner_of(url, backup)
        above = max(above, _newest(url))
        kept = _put(url, backup, show)
    with opened(url) as store:
        return Restored(store.url, *raise_numbers(store, above), kept)


def _newest(url: str) -> int:
    """The newest number of the store that is about to be replaced; 0 if there is none, or none that can be read."""
    try:
        with opened(url) as store:
            return store.execute(Survey()).latest
    except HoldfastError:
        return 0


def _put(url: str, backup: Path, show: Show) -> str | None:
    backups, place = backups_of(url), file_of(url)
    assert place is not None, "what has backups is a file"  # noqa: S101 - for the type checker
    aside = place.with_name(f"{place.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    return str(aside) if backups.put(backup, aside, show) else None
