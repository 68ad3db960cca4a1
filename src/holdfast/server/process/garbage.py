"""Paces the full collections of cyclic garbage: while one runs, everything in the process stands still.

Python begins one whenever a quarter more objects survived than before. A caller that waits on many topics makes these many, so they took up
to 80 ms every few seconds. Here they are begun by a timer, and the longer the last one took, the later.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Final

TICK_S: Final = 1.0

SHARE: Final = 500
"""Full collections take one part in so many of the time, unless that would be less often than `LONGEST_S`."""

SHORTEST_S: Final = 10.0
LONGEST_S: Final = 60.0
"""The times between two while there is work: what is in a cycle stays in memory for as long. Requests leave none behind."""

NEVER: Final = 2**31 - 1

OLDEST: Final = 2
"""The generation of what survived before, which only a full collection looks at."""


class Garbage:
    """Of this process; used on one event loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic, collect: Callable[[], object] = gc.collect) -> None:
        self._now = now
        self._collect = collect
        self._next_at = now()

    def begin(self) -> None:
        """Leave out what there is, which lives as long as the process. Young garbage is collected as before."""
        self._collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, NEVER)

    def watch(self) -> None:
        """Look every second from now on, on the running event loop, whether it is time for a full collection."""
        self.look()
        asyncio.get_running_loop().call_later(TICK_S, self.watch)

    def look(self) -> None:
        """Collect everything, if something may have become garbage since and the last time is long enough ago."""
        began = self._now()
        if began < self._next_at or not gc.get_count()[OLDEST]:
            return
        self._collect()
        ended = self._now()
        self._next_at = ended + min(max(SHORTEST_S, SHARE * (ended - began)), LONGEST_S)
