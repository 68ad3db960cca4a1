"""The folder where the sockets of one database meet, and a way there that fits into a socket's address."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE, S_ISDIR

from holdfast.stores.files.beside import beside, share_like

LONGEST_ADDRESS_BYTES = 103
"""What macOS allows; Linux allows four more."""

LONGEST_NAME_BYTES = 24

OURS_ALONE = 0o700


def folder_for(database: str | os.PathLike[str]) -> str:
    """Return the folder where sockets meet, the same in every process.

    It stands beside the database. Where that is too far for a socket's address and the system has no shorter way there, it is a folder of
    the user in the place for temporary files, named by the database's device and inode.
    """
    folder = str(beside(database, "-wake"))
    if _fits(folder) or sys.platform == "linux":
        return folder
    return temporary_folder_for(database)


def temporary_folder_for(database: str | os.PathLike[str]) -> str:
    """Return the folder for a database that is too deep down; processes of one user and one `TMPDIR` meet there."""
    status = Path(database).stat()
    return str(Path(tempfile.gettempdir(), f"holdfast-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}"))


def make_folder(folder: str, database: str | os.PathLike[str]) -> None:
    """Make the folder, or check that it is one to trust."""
    path = Path(folder)
    is_beside = path == beside(database, "-wake")
    try:
        path.mkdir(mode=OURS_ALONE)
    except FileExistsError:
        status = path.lstat()
        # Anyone could have made the other one before us, to listen in.
        if not is_beside and not (S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and S_IMODE(status.st_mode) == OURS_ALONE):
            raise PermissionError(f"{folder} was not made by us: remove it") from None
    else:
        if is_beside:
            share_like(database, path)


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove the folder if no socket is left in it."""
    with suppress(OSError):
        Path(folder).rmdir()


def _fits(folder: str) -> bool:
    return len(os.fsencode(folder)) + 1 + LONGEST_NAME_BYTES <= LONGEST_ADDRESS_BYTES


@contextmanager
def way_to(folder: str) -> Iterator[str]:
    """Give a way to the folder that is short enough for a socket's address: where its path is too long, through a descriptor."""
    if _fits(folder):
        yield folder
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
