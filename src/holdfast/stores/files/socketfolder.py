"""The folder of the wake-up sockets of one database.

The owner of the database's folder can put anything there under any name, so the folder is opened without following a link, and only sockets
whose names have our form are connected to or removed.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE, S_ISSOCK

from holdfast.stores.files.beside import beside, share_like, status_of

LONGEST_ADDRESS_BYTES = 103
"""What macOS allows; Linux allows four more."""

LONGEST_NAME_BYTES = 24

OURS_ALONE = 0o700
SHARED = 0o022
"""A database with one of these bits is meant to be written by others than its owner."""

NAME = re.compile(r"\d{1,10}-[0-9a-f]{12}")
"""Of a socket: the process, and what no other has."""


def folder_for(database: str | os.PathLike[str]) -> str:
    """Return the folder where sockets meet, the same in every process.

    It stands beside the database. Where that is too far for a socket's address and the system has no shorter way there, it is a folder of
    the user in the place for temporary files, named by the database's device and inode.
    """
    folder = str(beside(database, "-wake"))
    if sys.platform == "linux" or _fits(folder):
        return folder
    return temporary_folder_for(database)


def temporary_folder_for(database: str | os.PathLike[str]) -> str:
    """Return the folder for a database that is too deep down; processes of one user and one `TMPDIR` meet there."""
    status = Path(database).stat()
    return str(Path(tempfile.gettempdir(), f"holdfast-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}"))


def _fits(folder: str) -> bool:
    return len(os.fsencode(folder)) + 1 + LONGEST_NAME_BYTES <= LONGEST_ADDRESS_BYTES


class SocketFolder:
    """The folder, open: what is done in it is done there, whatever its path leads to meanwhile."""

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self._path = path

    def names(self) -> set[str]:
        """The names that sockets of ours have."""
        return {name for name in os.listdir(self.fd) if NAME.fullmatch(name)}  # noqa: PTH208 - Path knows no descriptors

    def address_of(self, name: str) -> str:
        """A way to a socket that is short enough for an address: on Linux through the descriptor."""
        return f"/proc/self/fd/{self.fd}/{name}" if sys.platform == "linux" else f"{self._path}/{name}"

    def is_socket(self, name: str) -> bool:
        try:
            return S_ISSOCK(os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def share_socket(self, name: str, database: str | os.PathLike[str]) -> None:
        """Make a socket that we just bound as open to others as the database."""
        if sys.platform != "linux":
            share_by_name(self.fd, name, database)
            return
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self.fd)
        try:
            status = os.fstat(fd)
            if not S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
                raise PermissionError(f"{self._path}/{name} is no longer the socket that we made")
            share_exactly(f"/proc/self/fd/{fd}", database)
        finally:
            os.close(fd)

    def rename(self, name: str, new: str) -> None:
        os.rename(name, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a socket; whatever else has the name stays."""
        if self.is_socket(name):
            os.unlink(name, dir_fd=self.fd)


def share_exactly(link: str, database: str | os.PathLike[str]) -> None:
    """Set mode and owner through the link of a descriptor that only names a file."""
    status = status_of(database)
    if status is None:
        return
    os.chmod(link, status.st_mode & 0o666)  # noqa: PTH101 - as above
    if os.geteuid() == 0:
        os.chown(link, status.st_uid, status.st_gid)


def share_by_name(fd: int, name: str, database: str | os.PathLike[str]) -> None:
    """Set mode and owner where a socket has no descriptor; links are not followed."""
    status = status_of(database)
    if status is None:
        return
    os.chmod(name, status.st_mode & 0o666, dir_fd=fd, follow_symlinks=False)
    if os.geteuid() == 0:
        os.chown(name, status.st_uid, status.st_gid, dir_fd=fd, follow_symlinks=False)


def make_folder(folder: str, database: str | os.PathLike[str]) -> None:
    """Make the folder if there is none."""
    try:
        Path(folder).mkdir(mode=OURS_ALONE)
    except FileExistsError:
        return
    if folder == str(beside(database, "-wake")):
        with _descriptor_of(folder) as fd:
            if os.fstat(fd).st_uid != os.geteuid():
                raise PermissionError(f"{folder} was replaced while it was created: check who can write its folder")
            share_like(database, fd)


@contextmanager
def opened(folder: str, database: str | os.PathLike[str]) -> Iterator[SocketFolder]:
    """Open the folder for a moment, if it is one to trust."""
    with _descriptor_of(folder) as fd:
        _check(fd, folder, database)
        yield SocketFolder(fd, folder)


@contextmanager
def _descriptor_of(folder: str) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _check(fd: int, folder: str, database: str | os.PathLike[str]) -> None:
    status = os.fstat(fd)
    is_ours = status.st_uid == os.geteuid()
    if folder != str(beside(database, "-wake")):
        # Anyone could have made it before us, to listen in.
        if not (is_ours and S_IMODE(status.st_mode) == OURS_ALONE):
            raise PermissionError(f"{folder} was not made by us: remove it")
        return
    found = status_of(database)
    if not (is_ours or (found is not None and (status.st_uid == found.st_uid or found.st_mode & SHARED))):
        raise PermissionError(f"{folder} does not belong to the owner of the database: remove it")


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove the folder if no socket is left in it."""
    with suppress(OSError):
        Path(folder).rmdir()
