"""The read connections of a SQLite file, so that a long read delays no other."""

import sqlite3
import threading
from collections.abc import Callable
from typing import Final

MOST: Final = 5
"""How many may read at once; who comes then waits for the first."""


class Reader:
    """One connection, opened when it is first used."""

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()  # Guards the connection; a fork waits for it.
        self.connection: sqlite3.Connection | None = None


class Readers:
    """The connections of one store that read."""

    def __init__(self, open_connection: Callable[[], sqlite3.Connection]) -> None:
        self._open = open_connection
        self.all: tuple[Reader, ...] = tuple(Reader() for _ in range(MOST))

    def take(self) -> Reader:
        """One that is not in use, locked; the caller unlocks it."""
        for reader in self.all:
            if reader.lock.acquire(blocking=False):
                return reader
        self.all[0].lock.acquire()
        return self.all[0]

    def cursor(self, reader: Reader) -> sqlite3.Cursor:
        """A cursor on it, for who has it locked."""
        if reader.connection is None:
            reader.connection = self._open()
        return reader.connection.cursor()

    def drop(self, reader: Reader) -> None:
        """Close its connection, for who has it locked; the next that uses it opens another."""
        if reader.connection is not None:
            reader.connection.close()
            reader.connection = None

    @property
    def connections(self) -> list[sqlite3.Connection]:
        """Those that are open."""
        return [reader.connection for reader in self.all if reader.connection is not None]

    def close(self) -> None:
        """Close each of them once it is not in use."""
        for reader in self.all:
            with reader.lock:
                if reader.connection is not None:
                    reader.connection.close()
