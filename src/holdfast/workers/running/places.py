"""Where the shift of a queue waits for jobs, and how many it may ask for."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from holdfast.commands import Claimed
from holdfast.commands.topics import queue_topic, watch_topic, worker_topic
from holdfast.stores.waiting.waiters import SLOW_POLL_S, Mark
from holdfast.workers.running.seats import Seats
from holdfast.workers.running.wakeup import Bell


class Marks(Protocol):
    """A store, as far as waiting goes."""

    def mark(self, topic: str) -> Mark:
        """Take a point to wait from."""
        ...


class Place(Protocol):
    """The place of one queue in a worker."""

    granted: int
    """How many seats it was given for what it was last told to ask for."""

    def room(self, most: int, slack: int, started: int) -> int:
        """How many jobs to ask for now: `most` at most, and `slack` that need no seat; so many of this queue were started."""
        ...

    def stand(self, room: int) -> AbstractContextManager[Mark]:
        """What to wait on in this turn, taken before the store is asked for so many jobs."""
        ...

    def claimed(self, asked: int, claimed: Claimed, seats: int) -> None:
        """A claim for so many came back with this, which takes so many seats."""
        ...

    def unclaimed(self) -> None:
        """A claim failed."""
        ...

    def ended(self, count: int, unstarted: int) -> None:
        """So many jobs have ended, of which some never began."""
        ...

    def settled(self) -> None:
        """Jobs were settled."""
        ...

    def woke(self) -> None:
        """A wait has returned."""
        ...

    def due_in_s(self, due_in_s: float | None) -> float | None:
        """When to ask again; `due_in_s` is what a claim of this turn said."""
        ...

    def is_done(self, *, is_empty: bool) -> bool:
        """Whether nothing is due and nothing runs; `is_empty` if a claim of this turn found nothing, and nothing had ended before it."""
        ...

    def is_used_up(self, started: int) -> bool:
        """Whether as many jobs as there may be were run; `started` of this queue."""
        ...

    def leave(self) -> None:
        """Ask for no more jobs, and wait for none."""
        ...


class OnlyPlace:
    """The place of the only queue of a worker: in the line of the queue whenever there is room.

    Its mark is kept while there is: one that asked in vain would else pass its wake-up on, and each put would wake the whole line.
    """

    def __init__(self, store: Marks, queue: str, incarnation: str, max_jobs: int | None) -> None:
        self._store = store
        self._topics = worker_topic(incarnation), queue_topic(queue)
        self._max_jobs = max_jobs
        self._mark: Mark | None = None
        self.granted: int = 0

    def room(self, most: int, slack: int, started: int) -> int:
        self.granted = most
        most += slack
        return most if self._max_jobs is None else min(most, self._max_jobs - started)

    def stand(self, room: int) -> AbstractContextManager[Mark]:
        # With no room it stands in no line: a wake-up there is for somebody who can use it.
        topic, mark = self._topics[bool(room)], self._mark
        if mark is not None and mark.topic == topic:
            mark.begin_anew()
        else:
            self.leave()
            self._mark = mark = self._store.mark(topic)
        return nullcontext(mark)

    def claimed(self, asked: int, claimed: Claimed, seats: int) -> None:
        pass

    def unclaimed(self) -> None:
        pass

    def ended(self, count: int, unstarted: int) -> None:
        pass

    def settled(self) -> None:
        pass

    def woke(self) -> None:
        pass

    def due_in_s(self, due_in_s: float | None) -> float | None:
        return due_in_s

    def is_done(self, *, is_empty: bool) -> bool:
        return is_empty

    def is_used_up(self, started: int) -> bool:
        return self._max_jobs is not None and started >= self._max_jobs

    def leave(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.leave()


class SharedPlace:
    """The place of one of several queues: it has as many jobs as `Seats` gives it.

    A dry queue is not asked again before a hint or a due moment: it waits in its line while there is a seat for what comes, and else only
    watches. Its mark is kept from turn to turn, so that no hint is lost between them.
    """

    def __init__(self, store: Marks, queue: str, incarnation: str, seats: Seats, *, bell: Bell, now: Callable[[], float]) -> None:
        self._store = store
        self._queue = queue
        self._seats = seats
        self._bell = bell
        self._now = now
        self._line, self._watch, self._none = queue_topic(queue), watch_topic(queue_topic(queue)), worker_topic(incarnation)
        self._mark: Mark | None = None
        self._ask_at = -math.inf
        self._may_ask = True
        self.granted: int = 0
        seats.ring_for(queue, bell)

    def room(self, most: int, slack: int, started: int) -> int:  # noqa: ARG002 - counted for all queues together
        if (self._mark is not None and self._mark.is_hinted) or self._now() >= self._ask_at:
            self._seats.hinted(self._queue)
        self.granted = 0
        self._may_ask = most + slack > 0
        if not self._may_ask:
            self._seats.pass_over(self._queue)
            return 0
        if self._seats.is_dry(self._queue):
            return 0
        self.granted = self._seats.take(self._queue, most) if most else 0
        return self.granted + slack if self.granted or not most else 0

    def stand(self, room: int) -> AbstractContextManager[Mark]:
        topic = self._line if room else self._none
        if not room and self._may_ask and self._seats.is_dry(self._queue):
            topic = self._line if self._seats.may_rest(self._queue) else self._watch
        last, mark = self._mark, self._mark
        if mark is None or mark.topic != topic:
            self._mark = mark = self._store.mark(topic)
            if last is not None:
                if last.is_hinted and not room:
                    mark.nudge()  # What was hinted before is looked at in the next turn.
                    self._ask_at = -math.inf
                last.leave()
        elif room:
            mark.begin_anew()
        return nullcontext(mark)

    def claimed(self, asked: int, claimed: Claimed, seats: int) -> None:
        in_s = SLOW_POLL_S if claimed.due_in_s is None else min(claimed.due_in_s, SLOW_POLL_S)
        self._ask_at = self._now() + in_s
        self._seats.claimed(self._queue, self.granted, seats, is_dry=len(claimed.messages) < asked)

    def unclaimed(self) -> None:
        self._seats.give_back(self._queue, self.granted)

    def ended(self, count: int, unstarted: int) -> None:
        self._seats.ended(self._queue, count, unstarted)

    def settled(self) -> None:
        self._seats.settled()

    def woke(self) -> None:
        if not self._bell.has_rung:  # By a hint, by time, or because the store cannot say: ask.
            self._ask_at = -math.inf

    def due_in_s(self, due_in_s: float | None) -> float | None:
        if due_in_s is not None or not self._seats.is_dry(self._queue):
            return due_in_s
        return max(0.0, self._ask_at - self._now())

    def is_done(self, *, is_empty: bool) -> bool:  # noqa: ARG002 - the other queues count, too
        return self._seats.are_all_dry()

    def is_used_up(self, started: int) -> bool:  # noqa: ARG002 - as above
        return self._seats.are_used_up()

    def leave(self) -> None:
        self._may_ask = False
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.leave()
