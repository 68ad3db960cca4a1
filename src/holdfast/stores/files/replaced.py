"""Detects that a store's file was removed, or replaced, for example by a backup."""

import logging
import os
import time
from typing import NoReturn

from holdfast.errors import StoreError

LOOK_S = 1.0
"""How often a store looks at the name of its file."""

logger: logging.Logger = logging.getLogger(__name__)


def inode_of(path: str | os.PathLike[str]) -> int:
    """The number of the file that a path leads to."""
    return os.stat(path).st_ino  # noqa: PTH116 - half the cost of Path.stat


def warn_of_copy(path: str | os.PathLike[str], noted: int, found: int) -> bool:
    """Say once that the file was put here since it was opened last, where that is so."""
    if noted == found:
        return False
    logger.warning("%s was replaced by a copy since it was last opened: if it is a restored backup, run `holdfast restore`", path)
    return True


class Watchman:
    """Looks now and then whether the file that a store has open was removed or replaced: SQLite and LMDB would go on with the old one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._inode = inode_of(path)
        self._look_at_s = time.monotonic() + LOOK_S

    def look(self) -> None:
        """Refuse to go on with a file that is no longer there under its name."""
        now_s = time.monotonic()
        if now_s < self._look_at_s:
            return
        try:
            found = inode_of(self._path)
        except FileNotFoundError:
            self._refuse("was removed while it was open, and what is written to it is lost: put it back, or stop all its programs")
        except OSError:
            found = self._inode  # Out of reach: nothing is known to stand in its place.
        if found != self._inode:
            self._refuse("was replaced while it was open: stop all its programs, restore it again, run `holdfast restore`")
        self._look_at_s = now_s + LOOK_S

    def _refuse(self, why: str) -> NoReturn:
        message = f"{self._path} {why}"
        logger.warning(message)
        raise StoreError(message)
