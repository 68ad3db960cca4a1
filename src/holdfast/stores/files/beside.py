"""Files beside the database, with the same permissions.

Another user may own the folder and exchange what is in it at any moment, so nothing is changed by its path: a name is opened without
following links, looked at, and changed through its descriptor.
"""

import os
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG

from holdfast.errors import StoreError

OURS_ALONE = 0o600
"""What a new database, or what is made before there is one, is open to."""


def beside(database: str | os.PathLike[str], suffix: str) -> Path:
    """Return the path of a companion: all names that lead to one database through symbolic links give one path, as in SQLite."""
    return Path(os.path.realpath(database) + suffix)


def status_of(database: str | os.PathLike[str]) -> os.stat_result | None:
    """Mode and owner of the database, None while there is none."""
    try:
        return Path(database).stat()
    except FileNotFoundError:
        return None


def share_like(database: str | os.PathLike[str], fd: int) -> None:
    """Give what we just made the database's mode (and owner, where we may): users who can write the one can use the other.

    A folder's execute bits follow the read bits. While there is no database nothing changes.
    """
    status = status_of(database)
    if status is None:
        return
    mode = status.st_mode & 0o666
    os.fchmod(fd, mode | (mode & 0o444) >> 2 if S_ISDIR(os.fstat(fd).st_mode) else mode)
    if os.geteuid() == 0:
        os.fchown(fd, status.st_uid, status.st_gid)


def refuse_what_others_placed(*paths: str | os.PathLike[str]) -> None:
    """Refuse, before an engine opens these by name, a link that another user made, and whatever is neither file nor folder.

    A link may be ours, root's, or of the one to whom belongs what it leads to. Who can exchange a file afterwards is not stopped by this.
    """
    for path in paths:
        try:
            link = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found = status_of(path) if S_ISLNK(link.st_mode) else link
        if S_ISLNK(link.st_mode) and link.st_uid not in (os.geteuid(), 0) and (found is None or found.st_uid != link.st_uid):
            raise StoreError(f"{path} is a link that another user made to a file that is not theirs: remove it")
        if found is not None and not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):
            raise StoreError(f"{path} is neither a file nor a folder: remove it, or name another path")


def create_database(path: str | os.PathLike[str]) -> None:
    """Make an empty file that is its owner's alone, where there is none; what fails here is for the engine to say."""
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OURS_ALONE))


def open_companion(path: Path, database: str | os.PathLike[str]) -> int:
    """Open a file of ours, or make it; refuses a link, and whatever is not a file."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, OURS_ALONE)
    except FileExistsError:
        fd = os.open(path, flags)
        if not S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(f"{path} is not a file") from None
        return fd
    share_like(database, fd)
    return fd


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Let the names in a folder survive a loss of power; SQLite does so for its own files."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError:  # Not every file system can.
        return
    finally:
        os.close(fd)
