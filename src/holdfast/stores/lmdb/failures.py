"""What LMDB and the system report, as errors of ours."""

import errno

import lmdb

from holdfast.errors import HoldfastError, StoreCorrupted, StoreError, StoreFull, StoreUnavailable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})

DAMAGED = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.VersionMismatchError, lmdb.IncompatibleError)
BUSY = (lmdb.LockError, lmdb.ReadersFullError, lmdb.MapResizedError)


def is_for_lack_of_room(error: Exception) -> bool:
    """Whether it failed before anything was written, because there was no room to."""
    return isinstance(error, lmdb.MapFullError) or code_of(error) in NO_ROOM


def translate(error: Exception, path: str) -> HoldfastError:
    """An error of LMDB, or of the system while the environment was opened."""
    if is_for_lack_of_room(error):
        return StoreFull(
            f"no room is left for {path}: free some on the disk, or open it with a larger map_size; nothing was written ({error})"
        )
    if isinstance(error, DAMAGED):
        return StoreCorrupted(f"{path} is damaged or no LMDB environment: restore a backup ({error})")
    if isinstance(error, BUSY):
        return StoreUnavailable(f"{path} cannot be used at this moment: try again ({error})")
    if code_of(error) in NO_ACCESS or isinstance(error, lmdb.ReadonlyError):
        return StoreError(f"{path} cannot be written: check the permissions of the folder and the files in it ({error})")
    return StoreError(f"{path}: LMDB reports {error}; nothing was written")


def code_of(error: Exception) -> int | None:
    """The system's number for it."""
    if isinstance(error, OSError):
        return error.errno
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None
