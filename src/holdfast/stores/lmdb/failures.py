"""Maps errors of LMDB and the system to Holdfast's own."""

import errno
import os
from struct import error as StructError  # noqa: N812 - as errors are named

import lmdb
from msgspec import MsgspecError

from holdfast.errors import HoldfastError, StoreCorrupted, StoreError, StoreFull, StoreUnavailable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})

DAMAGED = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.VersionMismatchError, lmdb.IncompatibleError)
UNREADABLE = (lmdb.Error, OSError, MsgspecError, StructError, UnicodeDecodeError, LookupError)
"""What the engine, the system, or reading what is no longer what we wrote may raise."""

LITTLE_BYTES = 2**20
"""With less than this on the disk, a write that fell short did so for lack of room."""

BUSY = (lmdb.LockError, lmdb.ReadersFullError, lmdb.MapResizedError)


def is_for_lack_of_room(error: Exception) -> bool:
    """Whether it failed before anything was written, because there was no room to."""
    return isinstance(error, lmdb.MapFullError) or code_of(error) in NO_ROOM


def translate(error: Exception, path: str) -> HoldfastError:
    """What was raised while nothing was written, as one of ours."""
    if isinstance(error, HoldfastError):
        return error
    if is_for_lack_of_room(error) or (code_of(error) == errno.EIO and has_little_room(path)):
        return StoreFull(
            f"no space is left for {path}: free some on the disk, or open it with a larger map_size; nothing was written ({error})"
        )
    if isinstance(error, DAMAGED) or not isinstance(error, lmdb.Error | OSError):
        return StoreCorrupted(f"{path} is damaged or not an LMDB environment: restore a backup ({error})")
    if isinstance(error, BUSY):
        return StoreUnavailable(f"{path} cannot be used at this moment: try again ({error})")
    if code_of(error) in NO_ACCESS or isinstance(error, lmdb.ReadonlyError):
        return StoreError(f"{path} cannot be written: check the permissions of the folder and the files in it ({error})")
    return StoreError(f"{path}: LMDB reports {error}; nothing was written")


def has_little_room(path: str) -> bool:
    """Whether the disk is full: LMDB reports a write that fell short as an input/output error."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < LITTLE_BYTES


def code_of(error: Exception) -> int | None:
    """The system's number for it."""
    if isinstance(error, OSError):
        return error.errno
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None
