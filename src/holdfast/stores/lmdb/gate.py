"""Counts the users of an environment, for operations that need it exclusively.

Each thread has a lock of its own and holds it while it is inside, so entering costs no more than that; to have the environment
empty, a thread takes them all. An interrupt (Ctrl-C) may strike between any two steps of Python's, but not inside `with lock`.
"""

import threading
import time
import weakref


class Gate:
    """Lets each thread in once at a time, or shuts and waits until all have left: to grow the map, to close, to fork."""

    def __init__(self) -> None:
        # Held while it is shut; guards the two below.
        self._shutting = threading.Lock()
        self._places: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
        self._taken: list[threading.Lock] = []
        self._own = threading.local()

    def place(self) -> threading.Lock:
        """The lock that this thread holds while it is inside: `with gate.place():`."""
        place: threading.Lock | None = getattr(self._own, "place", None)
        if place is None:
            place = threading.Lock()
            with self._shutting:
                self._places.add(place)
            self._own.place = place
        return place

    def shut(self, timeout_s: float = -1) -> bool:
        """Let no one in until `open`; whether all have left in time. Not for a thread that an interrupt may reach."""
        deadline_s = time.monotonic() + timeout_s
        if not self._shutting.acquire(timeout=timeout_s):
            return False
        for place in list(self._places):
            if not place.acquire(timeout=-1 if timeout_s < 0 else max(0.0, deadline_s - time.monotonic())):
                return False
            self._taken.append(place)
        return True

    def open(self) -> None:
        """Let them in again. Idempotent."""
        while self._taken:
            self._taken.pop().release()
        if self._shutting.locked():
            self._shutting.release()
