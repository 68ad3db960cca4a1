"""Those who wait for results of one queue: one of them reads for all, and tells each what was found."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Raw, Struct

from holdfast.process.event_loops import running_loop
from holdfast.stores.waiting.waiters import Mark, Waiters

Found = Raw | Exception
"""A stored result, or why there will be none."""


class ResultWait(Struct, eq=False, weakref=True):
    """One who waits for the result of a job."""

    number: int
    id: str
    mark: Mark
    found: Found | None = None


class ResultWaits:
    """Those who wait for results of one queue of one store: the tasks of one event loop, or threads.

    One of them reads for all; when it ends, another one goes on where it was. The others sleep until they are told what was found.
    """

    def __init__(self, store: Any) -> None:
        self.waiters: Waiters = Waiters()
        """What those sleep on who do not read."""
        self.index: int | None = None
        """Up to which event the log of results was read, by whichever reader; None where the next look is at all jobs."""
        self.look_at: float = 0.0
        """When it is time to look at all jobs again."""
        self._store = store  # Kept, so that no other store has its identity meanwhile.
        # Reentrant, because the garbage collector may end an abandoned wait in a thread that holds it.
        self._lock = threading.RLock()
        # Nothing here keeps a wait alive: one whose owner was interrupted before it could leave is forgotten.
        self._waits: WeakValueDictionary[int, ResultWait] = WeakValueDictionary()
        self._numbers = count(1)
        self._reader = 0

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._waits

    def join(self, message_id: str) -> ResultWait:
        """Begin to wait for the result of this job; the caller leaves when it is over."""
        wait = ResultWait(next(self._numbers), message_id, self.waiters.mark("results"))
        self._waits[wait.number] = wait
        return wait

    def leave(self, wait: ResultWait) -> None:
        """Wait no more; if this one was the reader, wake another to read."""
        with self._lock:
            self._waits.pop(wait.number, None)
            heir = None if self._reader in self._waits else next(iter(self._waits.values()), None)
        wait.mark.leave()
        if heir is not None:
            heir.mark.nudge()

    def reads(self, wait: ResultWait) -> bool:
        """Whether this one is to read for all, because no other does."""
        with self._lock:
            if self._reader not in self._waits:
                self._reader = wait.number
            return self._reader == wait.number

    def ids(self) -> list[str]:
        """The jobs whose results are waited for."""
        with self._lock:
            return list({wait.id: None for wait in self._waits.values() if wait.found is None})

    def tell(self, message_id: str, found: Found) -> None:
        """Say what became of a job."""
        with self._lock:
            told = [wait for wait in self._waits.values() if wait.id == message_id and wait.found is None]
        for wait in told:
            wait.found = found
            wait.mark.nudge()


_all: dict[tuple[Any, ...], ResultWaits] = {}


@contextmanager
def waits_of(store: Any, queue: str) -> Iterator[ResultWaits]:
    """Those who wait for results of this queue in the running event loop, or else in threads of this process."""
    place = (os.getpid(), id(store), running_loop(), queue)
    waits = _all.setdefault(place, ResultWaits(store))
    try:
        yield waits
    finally:
        # If somebody joins at this very moment, later ones make others: two read then, and nothing is lost.
        if waits.is_empty and _all.get(place) is waits:
            _all.pop(place, None)
