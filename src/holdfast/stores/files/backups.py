"""Backups of stores that are files: making one while programs use the store, and putting one in its place."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from holdfast.errors import StoreError
from holdfast.stores.files.beside import OURS_ALONE, share_like, sync_folder

Progress = Callable[[int, int], None]
"""Called with how much is done, and with how much there is."""


class Backups(Protocol):
    """The backups of one store."""

    def write(self, target: Path, progress: Progress) -> None:
        """Copy the store, as it is at one moment, to a path where nothing is yet; programs may go on. `progress` is called with pages."""
        ...

    def damage(self, limit: int) -> list[str]:
        """What the engine finds damaged in the store, up to so many sentences."""
        ...

    def put(self, backup: Path, aside: Path, progress: Progress) -> bool:
        """Put a backup in the place of the store, which is kept under the path `aside`; return whether there was one.

        `progress` is called with bytes.
        Raises `StoreError` while another program has the store open, and `StoreCorrupted` for what is not a backup of a store.
        """
        ...


def refuse_existing(target: Path) -> None:
    """Refuse to write a backup over anything."""
    if target.exists() or target.is_symlink():
        raise StoreError(f"{target} is there already: name another path, or remove it")


PORTION_BYTES = 2**20
"""So much of a backup is copied between two looks at the progress."""


def put_file(backup: Path, place: Path, aside: Path, progress: Progress) -> bool:
    """Let a copy of the backup take the place of a file in one step, which is kept aside; return whether there was one."""
    fresh = place.with_name(f"{place.name}.restoring")
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OURS_ALONE)
    try:
        with backup.open("rb") as source, os.fdopen(fd, "wb") as made:
            share_like(place, made.fileno())
            done, total = 0, os.fstat(source.fileno()).st_size
            while portion := source.read(PORTION_BYTES):
                made.write(portion)
                done += len(portion)
                progress(done, total)
            made.flush()
            os.fsync(made.fileno())
        was_there = place.exists()
        if was_there:
            aside.hardlink_to(place)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(place.parent)
    return was_there
