"""POSIX record locks on the bytes of one file.

They end with their process and are not inherited: a `flock`, like a lock on an open file description, lives on in a forked child. The
price is that they belong to the process, not to the descriptor: closing any descriptor of the file drops them all.
"""

import os
import struct
import sys
import time
from fcntl import F_GETLK, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, fcntl, lockf

# The kernel's struct flock.
if sys.platform == "darwin":
    _FLOCK = struct.Struct("qqihh")  # start, length, pid, type, whence
    _PID, _TYPE = 2, 3
else:
    _FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, pid
    _PID, _TYPE = 4, 0

_RETRY_S = 0.001


class RecordLocks:
    """One descriptor, and locks on bytes; none of them needs to exist in the file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        status = os.fstat(fd)
        self.identity: tuple[int, int] = status.st_dev, status.st_ino

    def lock_now(self, first: int, last: int) -> bool:
        """Lock all the bytes from `first` to `last`, or none if another process has one of them."""
        try:
            lockf(self._fd, LOCK_EX | LOCK_NB, last - first + 1, first)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def pass_now(self, gate: int, last: int) -> bool:
        """Lock what comes after `gate` up to `last`, unless another process has one of them or the gate."""
        fd = self._fd
        try:
            lockf(fd, LOCK_EX | LOCK_NB, last - gate + 1, gate)
        except (BlockingIOError, PermissionError):
            return False
        lockf(fd, LOCK_UN, 1, gate)
        return True

    def wait_for(self, byte: int) -> None:
        """Stand in the kernel's queue for a byte: first come, first served, and no way to give up."""
        while True:
            try:
                lockf(self._fd, LOCK_EX, 1, byte)
            except OSError:
                # The kernel takes all threads of a process for one: when each of two processes has locked something on one file and
                # waits for the other's on a second, it sees a deadlock where there is none, and refuses.
                time.sleep(_RETRY_S)
            else:
                return

    def share(self, byte: int) -> None:
        lockf(self._fd, LOCK_SH, 1, byte)

    def unlock(self, first: int, last: int | None = None) -> None:
        lockf(self._fd, LOCK_UN, 1 if last is None else last - first + 1, first)

    def process_at(self, byte: int) -> int | None:
        """Return another process that has a lock on the byte, shared or not; 0 where its id is not ours to know."""
        question = (byte, 1, 0, F_WRLCK, os.SEEK_SET) if sys.platform == "darwin" else (F_WRLCK, os.SEEK_SET, byte, 1, 0)
        answer = _FLOCK.unpack(fcntl(self._fd, F_GETLK, _FLOCK.pack(*question)))
        return None if answer[_TYPE] == F_UNLCK else int(answer[_PID])

    def close(self) -> None:
        os.close(self._fd)
