"""Fair turns between the processes that write one file, through record locks on a side file.

Who wants a turn locks the gate, then the turn, then unlocks the gate. So the next in line holds the gate while the one before works, the
others stand in the kernel's queue behind it, and nobody starves as under SQLite's busy handler.

A turn lasts for one commit, even if this process wants the next one too. One that was kept for later would have to be given up by a thread,
and no thread runs while a program's own code holds the interpreter: everybody would wait for it.

A wait in the kernel's queue ends at once when the turn comes but knows no timeout, so a thread of ours, the attendant, stands in line and
the caller waits for the attendant. Polling at the gate instead would lose the order of the line.

Nobody else may open the side file (see `recordlocks`), and nobody removes it: who made it anew would stand in a line of their own.
"""

import os
import threading
import time
from pathlib import Path

from holdfast.errors import Closed, StoreError, StoreUnavailable
from holdfast.stores.sqlite.beside import beside, share_like
from holdfast.stores.sqlite.recordlocks import RecordLocks

LOOK_S = 0.01
"""How often a waiting caller looks around."""

PATIENCE_S = 0.1
"""When the gate stayed shut for so long, the process that holds it was stopped there, and we go past it."""

GATE, TURN, PRESENCE = 0, 1, 2


class Turns:
    """The line in front of one file, as this process stands in it: one for each file, made by `shared`.

    Threads take turns by `mutex`, which the caller holds from `take` to `done`. In a forked child it is closed.
    """

    def __init__(self, path: str, locks: RecordLocks) -> None:
        self.path = path
        self.mutex = threading.Lock()
        self._locks = locks
        self._users = 0  # guarded by the registry's lock
        self._guard = threading.Lock()  # guards what follows; nothing that blocks is called under it
        self._open = False
        self._retired = False  # the side file is closed
        self._held = False  # the turn is ours
        self._wanted = False  # a caller waits
        self._in_line: int | None = None  # the byte that the attendant waits for
        self._in_line_since_s = 0.0
        self._attendant: threading.Thread | None = None
        self._bell = _shut()
        self._granted = _shut()

    @staticmethod
    def shared(database: str | os.PathLike[str]) -> "Turns":
        """Return this process's place in front of `database`; each call wants its `close`."""
        path = beside(database, "-turns")
        with _registry_lock:
            try:
                turns = _known(path) or _opened(path, database)
                turns.join()
            except OSError as error:
                raise StoreError(f"{path} cannot be used ({error}): its folder must be writable and on a local disk.") from error
            return turns

    def alone(self) -> bool:
        """Say whether no other process has the file open. Ask during a turn, so that none can come in between."""
        return self._locks.process_at(PRESENCE) is None

    def take(self, timeout_s: float) -> None:
        """Wait for the turn; `StoreUnavailable` when others kept it for `timeout_s`."""
        with self._guard:
            if self._in_line is None and self._open and self._locks.pass_now(GATE, TURN):
                self._held = True
                return
            if self._take_now():
                return
            self._wanted = True
            if self._in_line is None and self._has_attendant():
                self._in_line = GATE
                self._in_line_since_s = time.monotonic()
                self._ring()
        self._wait(timeout_s)

    def done(self) -> None:
        """Give the turn to who waits, after a commit or instead of one."""
        with self._guard:
            if self._held:
                self._held = False
                self._locks.unlock(TURN)

    def close(self) -> None:
        """Leave the line for good, once all who share this place have closed it."""
        with _registry_lock:
            self._users = max(self._users - 1, 0)
            if self._users or self._retired:
                return
            with self._guard:
                self._open = False
                self._release()
                self._locks.unlock(PRESENCE)
                in_line = self._in_line is not None
            if in_line:  # Nobody can be called out of the kernel's queue: the attendant retires when it comes to the front.
                return
            self._retire()
        if self._attendant:
            self._attendant.join()

    # What the caller does. The guard is held where the name says "now".

    def _take_now(self) -> bool:
        if not self._open:
            raise Closed(f"{self.path} was closed: open the store again.")
        if self._in_line is None and self._locks.pass_now(GATE, TURN):
            self._held = True
        elif self._in_line == GATE and time.monotonic() - self._in_line_since_s > PATIENCE_S and self._locks.lock_now(TURN, TURN):
            self._held = True
            self._wanted = False
        return self._held

    def _wait(self, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        try:
            while not self._granted.acquire(timeout=max(0.0, min(LOOK_S, deadline_s - time.monotonic()))):
                with self._guard:
                    if self._granted.acquire(blocking=False) or self._take_now():
                        return
                    self._complain_after(deadline_s, timeout_s)
        except BaseException:  # A Ctrl-C too: a turn granted to nobody would never end.
            with self._guard:
                self._wanted = False
                self._granted.acquire(blocking=False)
                self._release()
            raise

    def _complain_after(self, deadline_s: float, timeout_s: float) -> None:
        if time.monotonic() < deadline_s:
            return
        pid = self._locks.process_at(TURN) or self._locks.process_at(GATE)
        who = f"process {pid}" if pid else "another process"
        raise StoreUnavailable(
            f"{self.path}: {who} kept the turn to write for {timeout_s:g} s. If it is stopped, continue it or end it; then try again."
        )

    # What the attendant does: stand in line for a caller.

    def _has_attendant(self) -> bool:
        if not self._attendant:
            attendant = threading.Thread(target=self._attend, name="holdfast turns", daemon=True)
            try:
                attendant.start()
            except RuntimeError:  # No thread starts while the interpreter ends: the caller then tries at every look around.
                return False
            self._attendant = attendant
        return True

    def _attend(self) -> None:
        while not self._retired:
            self._bell.acquire()
            if self._in_line is not None:
                self._stand_in_line()

    def _stand_in_line(self) -> None:
        self._locks.wait_for(GATE)
        with self._guard:
            through = self._wanted and self._open
            self._in_line = TURN if through else None
            if not through:
                self._locks.unlock(GATE)
        if through:
            self._locks.wait_for(TURN)
            self._hand_over()
        with _registry_lock:
            if not self._users:
                self._retire()

    def _hand_over(self) -> None:
        with self._guard:
            self._in_line = None
            self._locks.unlock(GATE)
            if self._wanted and self._open:
                self._held = True
                self._wanted = False
                self._granted.release()
            else:
                self._locks.unlock(TURN)

    # What both do, under the guard.

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._locks.unlock(TURN)

    def _ring(self) -> None:
        if self._bell.locked():
            self._bell.release()

    # What the registry does, under its lock.

    def join(self) -> None:
        """Count one more who shares this place."""
        self._locks.share(PRESENCE)
        self._users += 1
        self._open = True

    def forget(self) -> None:
        """Close what a forked child inherited; the locks are the parent's and stay with it."""
        self.mutex = threading.Lock()
        self._guard = threading.Lock()
        self._users = 0
        self._open = self._held = False
        self._retired = True
        self._locks.close()

    def _retire(self) -> None:
        if self._retired:
            return
        del _registry[self._locks.identity]
        with self._guard:
            self._retired = True
            self._locks.close()
            self._ring()


_registry: dict[tuple[int, int], Turns] = {}
_registry_lock = threading.Lock()  # taken before a guard, never after


def _known(path: Path) -> Turns | None:
    # Looked up without opening: closing the second descriptor would drop the locks of the first.
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return _registry.get((status.st_dev, status.st_ino))


def _opened(path: Path, database: str | os.PathLike[str]) -> Turns:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        share_like(database, path)
    except FileExistsError:
        fd = os.open(path, os.O_RDWR)
    locks = RecordLocks(fd)
    # Should one be known after all (the file was exchanged since we looked), this descriptor stays open for the same reason.
    return _registry.setdefault(locks.identity, Turns(str(path), locks))


def _shut() -> threading.Lock:
    """Make a lock to sleep on: it opens when another thread releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def _forget_all() -> None:
    for turns in _registry.values():
        turns.forget()
    _registry.clear()
    _registry_lock.release()


os.register_at_fork(before=_registry_lock.acquire, after_in_parent=_registry_lock.release, after_in_child=_forget_all)
