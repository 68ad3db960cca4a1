"""What the peers of the networked stores share: what is known of one, how it is compared with ours, and the pieces they are made of.

Some hand out jobs by a call, and are measured cell by cell as ours is. Others only run jobs: they stand beside as many of our processes as
they run jobs at once. Those not installed are left out and named.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from msgspec import Struct

from bench.cells import SIZES, Pair, Work, compare_cells, compare_work
from bench.crews import Contender, Crew
from bench.measure import Figure, Run, at_least

R = TypeVar("R")

PATIENCE_S = 60.0


class Peer(Struct, frozen=True):
    """One that takes part: what it is imported as, how it is made, and how it runs jobs where it does not hand them out."""

    package: str
    make: Callable[[str], Contender]
    work: Work | None = None
    create: Callable[[str], None] | None = None
    """What has to be done on the server once."""
    sizes: Sequence[int] = SIZES
    """How many at a time it can be asked to put."""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None


Peers = Mapping[str, Peer]


def missing(peers: Peers) -> list[str]:
    return [name for name, peer in peers.items() if not peer.is_installed]


def compare_peer(run: Run, name: str, peer: Peer, ours: Crew, theirs: Crew) -> Iterator[Figure]:
    """Ours and one peer, round by round."""
    pair = Pair(name, ours, theirs, run.sizes.peer_rounds, at_least(1.0), peer.sizes)
    yield from compare_cells(run, pair, ["put"] if peer.work else ["put", "cycle"])
    if peer.work:
        yield from compare_work(run, theirs.url, pair, peer.work)


class OnLoop:
    """A peer for tasks, each of whose verbs runs to its end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def wait(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return self._loop.run_until_complete(coroutine)


class Span:
    """Counts jobs from any thread between the first and the last: how long a worker takes to start says nothing here."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        # Guards the moments.
        self._lock = threading.Lock()
        self._at: list[float] = []
        self._finished = threading.Event()

    def count(self, *_: Any, **__: Any) -> None:
        with self._lock:
            self._at.append(time.perf_counter())
            if len(self._at) == self._jobs:
                self._finished.set()

    async def count_async(self, *_: Any, **__: Any) -> None:
        self.count()

    def rate(self) -> float:
        if not self._finished.wait(PATIENCE_S):
            message = f"{self._jobs - len(self._at)} jobs were not run"
            raise TimeoutError(message)
        return (self._jobs - 1) / (self._at[self._jobs - 1] - self._at[0])

    async def rate_beside(self, work: Coroutine[Any, Any, object]) -> float:
        """The rate of a worker that is a task, which is ended then."""
        worker = asyncio.ensure_future(work)
        rate = await asyncio.to_thread(self.rate)
        worker.cancel()
        await asyncio.wait((worker,), timeout=1.0)
        return rate
