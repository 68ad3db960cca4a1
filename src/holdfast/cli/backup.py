"""The command `holdfast backup`."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from holdfast.cli.opening import AsJson, StoreUrl
from holdfast.cli.owner import act_as_owner_of
from holdfast.cli.progress import Lines, progress_bar
from holdfast.cli.showing import print_result
from holdfast.connect import backups_of, file_of


class BackedUp(Struct, frozen=True):
    """What was copied to where."""

    store: str
    backup: str
    size_bytes: int


def backup(
    target: Annotated[Path, typer.Argument(metavar="PATH", help="Where the backup is written: a file for SQLite, a folder for LMDB.")],
    *,
    url: StoreUrl = None,
    progress: Lines = False,
    as_json: AsJson = False,
) -> None:
    """Copy a SQLite or LMDB store, as it is at one moment, while programs use it.

    PostgreSQL and Redis are backed up by their own tools. `holdfast restore URL --from PATH` puts a backup in place.
    """
    act_as_owner_of(url, target)
    with progress_bar("copying pages", lines=progress, quiet=as_json) as show:
        backups_of(url).write(target, show)
    size_bytes = sum(one.stat().st_size for one in (target.iterdir() if target.is_dir() else [target]))
    done = BackedUp(str(file_of(url)), str(target), size_bytes)
    print_result(done, f"Copied {done.store} to {done.backup}, {size_bytes:,} bytes.", as_json=as_json)
