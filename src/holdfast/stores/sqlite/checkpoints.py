"""Checkpoints: moves the log into the file when the store is idle, so that a copy of the file alone is complete.

Commits go to the log beside the file (`-wal`). SQLite moves it into the file when the log is long or the last user closes. A store that is
idle, is closed beside others, or is never closed because its program simply ends would leave what it wrote in the log.
"""

import atexit
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from holdfast.process.forks import call_in_child
from holdfast.stores.sqlite import forks

IDLE_S = 1.0
"""A file without a commit for so long is idle."""

EXIT_S = 2.0
"""How long the end of the program waits for a checkpoint that another thread makes."""


class Logged(Protocol):
    """A store with a log."""

    commits: int
    """Grows with each commit."""

    def checkpoint(self) -> None:
        """Move the log into the file as far as it is not being read; never waits for other users of the file."""
        ...


def move_log(connection: sqlite3.Connection) -> None:
    """Checkpoint on a connection, without waiting; what fails now is done later."""
    with suppress(sqlite3.Error):
        connection.execute("pragma wal_checkpoint(passive)").fetchone()


def move_log_of(path: str) -> None:
    """Checkpoint on a connection of its own, so that no commit has to wait for it."""
    if not forks.opening.acquire(timeout=EXIT_S):
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=0.0, isolation_level=None)) as connection:
            move_log(connection)
    except sqlite3.Error:
        return
    finally:
        forks.opening.release()


def has_log(path: str) -> bool:
    """Whether something may be in the log: a program was killed, or others have the file open."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


class _Checkpointer:
    """A thread that lives while a store has something in its log, and looks whether it is idle."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start with nothing to do; in a forked child too, where there is no such thread."""
        self._lock = threading.Lock()  # Guards what follows.
        self._unmoved: dict[Logged, int] = {}
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def watch(self, store: Logged) -> None:
        """Move the store's log once it is idle."""
        with self._lock:
            self._unmoved[store] = -1
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="holdfast checkpoints", daemon=True)
            with suppress(RuntimeError):  # No thread starts while the interpreter ends.
                thread.start()
                self._thread = thread

    def forget(self, store: Logged) -> None:
        """Leave the store's log to its close."""
        with self._lock:
            self._unmoved.pop(store, None)

    def _run(self) -> None:
        while not self._ending.wait(IDLE_S):
            for store in self._idle():
                store.checkpoint()
            with self._lock:
                if not self._unmoved:
                    self._thread = None
                    return

    def _idle(self) -> list[Logged]:
        """Those without a commit since the last look; they are watched again after their next one."""
        with self._lock:
            idle = [store for store, commits in self._unmoved.items() if store.commits == commits]
            self._unmoved = {store: store.commits for store in self._unmoved if store not in idle}
            return idle

    def at_exit(self) -> None:
        """Move the logs of stores that the program leaves open; without the thread, Python closes them then as it ends."""
        self._ending.set()
        with self._lock:
            thread, stores, self._unmoved = self._thread, list(self._unmoved), {}
        if thread is not None:
            thread.join(EXIT_S)
        for store in stores:
            store.checkpoint()


_checkpointer = _Checkpointer()
watch: Callable[[Logged], None] = _checkpointer.watch
forget: Callable[[Logged], None] = _checkpointer.forget
atexit.register(_checkpointer.at_exit)
call_in_child(_checkpointer.begin)
