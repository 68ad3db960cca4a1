"""Files of ours that stand beside the database and are as open to others as it is."""

import os
from pathlib import Path


def beside(database: str | os.PathLike[str], suffix: str) -> Path:
    """Return the path of a companion: all names that lead to one database through symbolic links give one path, as in SQLite."""
    return Path(os.path.realpath(database) + suffix)


def share_like(database: str | os.PathLike[str], made: Path) -> None:
    """Give what we just made the database's mode (and owner, where we may): whoever can write the one can use the other.

    A folder's execute bits follow the read bits. While there is no database nothing changes.
    """
    try:
        status = Path(database).stat()
    except FileNotFoundError:
        return
    mode = status.st_mode & 0o666
    made.chmod(mode | (mode & 0o444) >> 2 if made.is_dir() else mode)
    if os.geteuid() == 0:
        os.chown(made, status.st_uid, status.st_gid)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Let the names in a folder survive a loss of power; SQLite does so for its own files."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError:  # Not every file system can.
        return
    finally:
        os.close(fd)
