"""Fair turns between the processes that write one file, through record locks on a side file.

Who wants a turn locks the gate, then the turn, then unlocks the gate. So the next in line holds the gate while the one before works, the
others stand in the kernel's queue behind it, and no one starves as under SQLite's busy handler.

A turn that had to be waited for is kept for up to `KEPT` commits: handing it over costs more than a commit. The pen, a third byte, is
locked only while something is being written, and no one writes without it. A kept turn that is not used is given up by a thread of ours;
where no thread of ours can run (the program is stopped, or its own code holds the interpreter), others find the pen lying there and pass.

A wait in the kernel's queue ends at once when the turn comes but knows no timeout, so a thread of ours, the attendant, stands in line and
the caller waits for the attendant. Polling at the gate instead would lose the order of the line.

Nothing else may open the side file (see `recordlocks`), and no one removes it: a process that made a new one would stand in another line.
"""

import os
import threading
import time
from pathlib import Path

from holdfast.errors import Closed, StoreError, StoreUnavailable
from holdfast.stores.files.beside import beside, open_companion
from holdfast.stores.files.recordlocks import RecordLocks

KEPT = 8
"""For how many commits a turn is kept when others want it too."""

IDLE_S = 0.001
"""A kept turn that was not used for so long is given up."""

LOOK_S = 0.02
"""How often a waiting caller looks around. If nothing is being written then, those before it are stopped or idle, and it passes them."""

GATE, TURN, PEN, PRESENCE = 0, 1, 2, 3


class Turns:
    """The line in front of one file, as this process stands in it: one for each file, made by `shared`.

    Threads take turns by `mutex`, which the caller holds from `take` to `done`. In a forked child it is closed.
    """

    def __init__(self, path: str, locks: RecordLocks) -> None:
        self.path = path
        self.mutex: threading.Lock = threading.Lock()
        self._locks = locks
        self._users = 0  # guarded by the registry's lock
        self._guard = threading.Lock()  # guards what follows; nothing that blocks is called under it
        self._open = False
        self._retired = False  # the side file is closed
        self._held = False  # the turn is ours
        self._left = 0  # for how many commits more
        self._writes = False  # the pen is ours
        self._wanted = False  # a caller waits
        self._in_line: int | None = None  # the byte that the attendant waits for
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
        """Wait for the turn and take the pen; `StoreUnavailable` when others wrote for `timeout_s`."""
        with self._guard:
            # Said first and in full what is nearly always so: every commit comes through here.
            if self._open and not self._held and self._in_line is None and self._locks.pass_now(GATE, PEN):
                self._held = self._writes = True
                return
            if self._take_now():
                return
            self._wanted = True
            if self._in_line is None and self._has_attendant():
                self._in_line = GATE
                self._ring()
        self._wait(timeout_s)

    def done(self) -> None:
        """Put the pen down, after a commit or instead of one; with it, unless it is kept for the next, the turn."""
        with self._guard:
            if self._left > 1 and self._writes:
                self._left -= 1
                self._writes = False
                self._locks.unlock(PEN)
            else:
                self._release()

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
        if self._held:
            self._writes = self._locks.lock_now(PEN, PEN)
            if not self._writes:  # Somebody passed us.
                self._release()
        elif self._in_line is None:
            self._held = self._writes = self._locks.pass_now(GATE, PEN)
        elif self._wanted and self._locks.lock_now(PEN, PEN):
            self._writes = True
            self._wanted = False
        return self._writes

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
        pid = self._locks.process_at(PEN) or self._locks.process_at(TURN) or self._locks.process_at(GATE)
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
            while self._in_line is not None:
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
            while not self._hand_over():
                self._locks.wait_for(PEN)
            self._look_after_kept()
        with _registry_lock:
            if not self._users:
                self._retire()

    def _hand_over(self) -> bool:
        """Give the turn and the pen to the caller, or back if none waits any more; False where one who passed us has the pen."""
        with self._guard:
            if not (self._wanted and self._open):
                self._locks.unlock(TURN, TURN if self._writes else PEN)
            elif self._locks.lock_now(PEN, PEN):
                self._held = self._writes = True
                self._left = KEPT
                self._wanted = False
                self._granted.release()
            else:
                return False
            self._in_line = None
            self._locks.unlock(GATE)
            return True

    def _look_after_kept(self) -> None:
        """Give up a kept turn when the program does not come back to use it."""
        left = 0
        while True:
            self._bell.acquire(timeout=IDLE_S)
            with self._guard:
                if self._left == left and not self._writes and self._in_line is None:
                    self._release()
                left = self._left
                if not self._held:
                    return

    # What both do, under the guard.

    def _release(self) -> None:
        if self._held:
            self._locks.unlock(TURN, PEN)
        elif self._writes:
            self._locks.unlock(PEN)
        self._held = self._writes = False
        self._left = 0

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
        self._open = self._held = self._writes = False
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
        status = path.lstat()
    except FileNotFoundError:
        return None
    return _registry.get((status.st_dev, status.st_ino))


def _opened(path: Path, database: str | os.PathLike[str]) -> Turns:
    locks = RecordLocks(open_companion(path, database))
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
