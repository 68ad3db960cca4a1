"""How the queues of a worker share its concurrency: in strict order, or by weights."""

import threading
from collections.abc import Mapping, Sequence

from holdfast.workers.running.wakeup import Bell


class Seats:
    """The seats of a worker with several queues. A job has one from before its claim until it has ended.

    A queue is dry while its last claim found less than it asked for and no hint has come since. In strict order a queue gets a seat only
    while every queue before it is dry. By weights each queue that is not dry has its share, at least one seat; what others leave unused is
    lent to it and never taken back by force, and in the long run starts follow the weights.
    """

    def __init__(
        self, count: int, queues: Sequence[str], weights: Mapping[str, float] | None = None, *, max_jobs: int | None = None
    ) -> None:
        self._count = count
        self._queues = tuple(queues)
        self._weights = weights
        total = sum(weights.values()) if weights else 1.0
        self._shares = {queue: max(1, int(count * weight / total)) for queue, weight in (weights or {}).items()}
        self._bells: dict[str, Bell] = {}
        # Guards what is below.
        self._lock = threading.Lock()
        self._left = max_jobs
        self._taken = dict.fromkeys(self._queues, 0)
        # How many jobs were started, divided by the weight of their queue: the least is next.
        self._started = dict.fromkeys(self._queues, 0.0)
        self._dry: set[str] = set()
        # Those that got less than they asked for, and look again when that may have changed.
        self._hungry: set[str] = set()
        # Those that stand in the line of their queue, whose hints they must be able to use.
        self._resting: set[str] = set()
        # How often jobs ended or were settled, and what that was when each queue was last asked for jobs.
        self._activity = 0
        self._asked = dict.fromkeys(self._queues, -1)

    def ring_for(self, queue: str, bell: Bell) -> None:
        """Ring this when the queue may get a seat, or has none any more."""
        self._bells[queue] = bell

    def take(self, queue: str, most: int) -> int:
        """Take as many seats as the queue may have now, `most` at most; return how many that are."""
        with self._lock:
            free = self._count - sum(self._taken.values())
            granted = min(most, self._granted(queue, free), most if self._left is None else self._left)
            self._taken[queue] += granted
            self._left = None if self._left is None else self._left - granted
            self._asked[queue] = self._activity
            self._resting.discard(queue)
            if granted < most:
                self._hungry.add(queue)
            rung = self._without(queue, self._resting) if granted and granted == free else []
        _ring(rung)
        return granted

    def claimed(self, queue: str, asked: int, found: int, *, is_dry: bool) -> None:
        """A claim with so many seats found jobs for so many: the other seats are left. A queue with fewer jobs than asked for is dry."""
        with self._lock:
            self._leave(queue, asked - found)
            if self._weights:
                self._started[queue] += found / self._weights[queue]
            if is_dry:
                self._dry.add(queue)
            rung = self._woken(queue) if found < asked else []
        _ring(rung)

    def give_back(self, queue: str, count: int) -> None:
        """Leave seats without having used them: the store could not be asked."""
        with self._lock:
            self._leave(queue, count)
            rung = self._woken(queue)
        _ring(rung)

    def ended(self, queue: str, count: int, unstarted: int = 0) -> None:
        """So many jobs have ended, of which some never began."""
        with self._lock:
            self._taken[queue] -= count
            self._left = None if self._left is None else self._left + unstarted
            self._activity += 1
            rung = self._woken(queue)
        _ring(rung)

    def settled(self) -> None:
        """Jobs were settled: what was given back may be due, and what they put."""
        with self._lock:
            self._activity += 1

    def hinted(self, queue: str) -> None:
        """There may be something in the queue."""
        with self._lock:
            if queue in self._dry:
                self._dry.discard(queue)
                self._forget_unused(queue)

    def pass_over(self, queue: str) -> None:
        """The queue may not be asked for now, though it may have work: keep no seat for it."""
        with self._lock:
            if sum(self._taken.values()) == self._count:
                return
            self._dry.add(queue)
            self._resting.discard(queue)
            rung = self._woken(queue)
        _ring(rung)

    def is_dry(self, queue: str) -> bool:
        """Whether nothing is known to be due in the queue."""
        return queue in self._dry

    def may_rest(self, queue: str) -> bool:
        """Whether the queue may stand in its line: there is a seat for what comes. If that changes, its bell rings."""
        with self._lock:
            has_seat = sum(self._taken.values()) < self._count
            (self._resting.add if has_seat else self._resting.discard)(queue)
            return has_seat

    def are_used_up(self) -> bool:
        """Whether as many jobs as there may be were run."""
        with self._lock:
            return self._left is not None and self._left <= 0 and not any(self._taken.values())

    def are_all_dry(self) -> bool:
        """Whether no queue has anything due and nothing runs; one that was asked before the last job ended is asked again."""
        with self._lock:
            if any(self._taken.values()) or len(self._dry) < len(self._queues):
                return False
            outdated = [queue for queue in self._queues if self._asked[queue] != self._activity]
            self._dry.difference_update(outdated)
            rung = [self._bells[queue] for queue in outdated]
        _ring(rung)
        return not outdated

    def _granted(self, queue: str, free: int) -> int:
        """How many of the free seats are for the queue."""
        if free <= 0:
            return 0
        if self._weights is None:
            before = self._queues[: self._queues.index(queue)]
            return free if all(one in self._dry for one in before) else 0
        wanting = [one for one in self._queues if one == queue or one not in self._dry]
        return free if len(wanting) == 1 else self._divided(wanting, free, self._weights)[queue]

    def _divided(self, wanting: Sequence[str], free: int, weights: Mapping[str, float]) -> dict[str, int]:
        """The free seats for those who want some: first up to the share of each, then by what each was given so far."""
        granted = dict.fromkeys(wanting, 0)
        started = {queue: self._started[queue] for queue in wanting}
        for _ in range(free):
            short = [one for one in wanting if self._taken[one] + granted[one] < self._shares[one]]
            chosen = min(short or wanting, key=lambda one: started[one])
            granted[chosen] += 1
            started[chosen] += 1 / weights[chosen]
        return granted

    def _forget_unused(self, queue: str) -> None:
        """A queue that had nothing to do has no claim on what it did not use."""
        others = [self._started[one] for one in self._queues if one != queue and one not in self._dry]
        if others:
            self._started[queue] = max(self._started[queue], min(others))

    def _leave(self, queue: str, count: int) -> None:
        self._taken[queue] -= count
        self._left = None if self._left is None else self._left + count

    def _woken(self, queue: str) -> list[Bell]:
        woken = self._without(queue, self._hungry)
        self._hungry &= {queue}
        return woken

    def _without(self, queue: str, queues: set[str]) -> list[Bell]:
        return [self._bells[one] for one in queues if one != queue]


def _ring(bells: Sequence[Bell]) -> None:
    for bell in bells:
        bell.ring()
