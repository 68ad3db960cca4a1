"""Waiting inside one process: threads and asyncio tasks wait side by side on topics, and a commit wakes as many as it has items.

A flow takes a mark, asks the store, and waits on the mark when there was nothing; after a commit the store gives a hint. Both orders are
safe: a hint that came after the mark makes the wait return at once. Waiters of a topic stand in line, oldest first, and one of them, the
keeper, also wakes when time alone may have made something due. Everyone in a line must be able to use what its hints announce, so one that
only watches has a topic of its own.
"""

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, Self

import msgspec

from holdfast.clock import Clock, MovableClock
from holdfast.commands.hints import ALL
from holdfast.errors import Closed
from holdfast.stores.waiting.alarms import TaskAlarm, ThreadAlarm
from holdfast.stores.waiting.line import Line, Listening, WokenBy

EVERYTHING: Final = ""
"""The topic of a hint for everyone, wherever they wait: hints were lost, and it is not known which."""

SLOTS: Final = 1024
LONGEST_NAP_S: Final = 86_400.0

SLOW_POLL_S: Final = 30.0
"""How long to wait before asking in vain where every hint arrives: asking again is only a backstop there."""


class Mark(msgspec.Struct, eq=False):
    """A point to wait from, and a place in its topic's line once it has waited.

    Leave it, or use it as a context manager: a wake-up that was not used is then passed on to the next in line.
    """

    # A Struct because one is made for every claim and this is its cheapest form; all but `topic` belongs to the Waiters that made it.
    waiters: "Waiters"
    topic: str
    heard: object
    line: "Line | None" = None
    woken_by: WokenBy | None = None
    deadline: float = 0.0
    alarm: "ThreadAlarm | TaskAlarm | None" = None
    is_out: bool = False
    """Whether it counts among those that hints may be for."""

    def used(self) -> None:
        """Say that the last ask found something."""
        if self.woken_by is not None:
            self.waiters._used(self)  # noqa: SLF001 - a mark and its Waiters are two halves of one thing

    def nudge(self) -> None:
        """Let the wait on this mark, or else the next one, return at once; from any thread. It is no hint, so nothing is passed on."""
        self.waiters._nudge(self)  # noqa: SLF001 - a mark and its Waiters are two halves of one thing

    @property
    def is_hinted(self) -> bool:
        """Whether its last wait ended by a hint or by time, or a hint came since."""
        return self.woken_by is not None or self.waiters._is_stale(self, self.line)  # noqa: SLF001 - as above

    @property
    def is_due(self) -> bool:
        """Whether its last wait ended because the due moment of the line came."""
        return self.woken_by == "time"

    def begin_anew(self) -> None:
        """Wait from here on: the caller asks the store next, so what was hinted before is known then."""
        self.waiters._begin_anew(self)  # noqa: SLF001 - a mark and its Waiters are two halves of one thing

    def become(self, other: "Mark") -> None:
        """Stand for another mark on the same topic, which its owner forgets: this one was taken where no waiter could be woken."""
        self.leave()
        self.waiters, self.heard, self.line, self.is_out = other.waiters, other.heard, other.line, other.is_out

    def leave(self) -> None:
        """Give up the place, passing on a wake-up that was not used. Idempotent."""
        if self.line is not None:
            self.waiters._ring(self.waiters._leave(self))  # noqa: SLF001 - a mark and its Waiters are two halves of one thing
        elif self.is_out:
            self.waiters._take_in(self)  # noqa: SLF001 - as above

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


class Waiters:
    """Everyone in this process who waits on one open store.

    Keeps nothing of a topic without waiters. `now` is the clock of time-outs, and of due moments and polls too unless `due_now` is
    given.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, due_now: Callable[[], float] | None = None) -> None:
        self._now = now
        self._due_now = due_now or now
        # One for each mark that is out: while there is none, no hint is for anyone. Grows before the mark's owner asks, is read after the
        # commit. Not a number, because adding and taking away are one step of the interpreter each, also for a finalizer in the middle.
        self.marked: deque[None] = deque()
        # Guards _lines, every line in it and its marks, and _closed. Reentrant, because the garbage collector may finalize an abandoned
        # generator, and so leave its mark, in a thread that holds it.
        self._lock = threading.RLock()
        self._lines: dict[str, Line] = {}
        # The latest hint by topic hash, for marks that stand in no line yet. Each hint is a new object, so that replacing one is atomic.
        self._heard = [object()] * SLOTS
        self._closed = False
        self.clock: MovableClock | None = None
        """The clock that due moments follow, where a test moves it."""
        self.announce: Callable[[str], Future[None] | None] = lambda _topic: None
        """Who listens to a topic calls this next, for a store that hears only of what it asked for; returns what is done once it has."""

    def mark(self, topic: str) -> Mark:
        """Take a point to wait from, before asking the store."""
        self.marked.append(None)
        return Mark(self, topic, self._heard[hash(topic) % SLOTS], is_out=True)

    def hint(self, topic: str, count: int = 1) -> None:
        """Say, after the commit, that `count` waiters may find something: the oldest are woken, and every earlier mark is stale.

        An item that is due later counts too: the waiter it wakes learns the new due moment.
        """
        if topic == EVERYTHING:
            self._hint_everything()
        else:
            self.hint_each(((topic, count),))

    def hint_each(self, hints: Iterable[tuple[str, int]]) -> None:
        """Give several hints."""
        if not self.marked:
            return
        heard, lines = self._heard, self._lines
        for topic, count in hints:
            # First said, then looked, without the lock: a waiter takes its place first and then looks whether something was said.
            heard[hash(topic) % SLOTS] = object()
            if topic in lines:
                self._wake(topic, count)

    def _hint_everything(self) -> None:
        """Wake everyone, after hints were lost: it is not known which."""
        self._heard[:] = [object()] * SLOTS
        for topic in self.topics():
            self._wake(topic, ALL)

    def _wake(self, topic: str, count: int) -> None:
        with self._lock:
            line = self._lines.get(topic)
            if line is None:
                return
            line.heard = object()
            to_ring, listeners = line.wake(count, "hint"), list(line.listeners)
        self._ring(to_ring)
        for told in listeners:
            told(count)

    def listen(self, topic: str, told: Callable[[int], None]) -> Callable[[], None]:
        """Report every hint on the topic, with its count, until the function that is returned is called; it takes no waiter's turn.

        For carrying hints to another process. `told` is called in the thread that hints, and must not block.
        """
        self.marked.append(None)
        with self._lock:
            line = self._lines.setdefault(topic, Line())
            line.members += 1
            line.listeners.append(told)
        return Listening(self, topic, line, told)

    def _stop_listening(self, topic: str, line: "Line", told: Callable[[int], None]) -> None:
        with self._lock:
            if told in line.listeners:
                line.listeners.remove(told)
                self.marked.pop()
                self._sign_off(topic, line)

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        """Block this thread until a hint, the time-out, or, for the line's keeper alone, `due_in_s` or `poll_s`.

        May return early for no reason. Raises `Closed` when the store is or gets closed.
        """
        alarm = ThreadAlarm()
        if not self._stand_in_line(mark, alarm, timeout_s, due_in_s, poll_s):
            return
        try:
            while (nap_s := self._nap_s(mark)) is not None:
                alarm.sleep(nap_s)
        except BaseException:
            self._step_out(mark)
            raise

    async def wait_async(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        """Suspend this task as `wait` blocks a thread."""
        alarm = TaskAlarm()
        if not self._stand_in_line(mark, alarm, timeout_s, due_in_s, poll_s):
            return
        try:
            while (nap_s := self._nap_s(mark)) is not None:
                await alarm.sleep(nap_s)
        except BaseException:
            self._step_out(mark)
            raise

    def close(self) -> None:
        """End every wait at once with `Closed`, and every later one as it begins."""
        with self._lock:
            self._closed = True
            to_ring = self._clear()
        self._ring(to_ring)

    def reset(self) -> None:
        """Forget everyone, in a forked child: the waiters, and the thread that held the lock, stayed in the parent."""
        self._lock = threading.RLock()
        self._clear()

    def clock_moved(self) -> None:
        """Let everyone look at the clock again, after a test moved it; who has asked and does not wait yet asks again."""
        self._heard[:] = [object()] * SLOTS
        with self._lock:
            for line in self._lines.values():
                line.heard = object()
            to_ring = [mark for line in self._lines.values() for mark in line.asleep]
        self._ring(to_ring)

    def waiting(self, topic: str) -> int:
        """How many wait on the topic at this moment."""
        with self._lock:
            return len(line.asleep) if (line := self._lines.get(topic)) else 0

    def topics(self) -> list[str]:
        """The topics with a line: there are waiters, or there were and they have not left."""
        with self._lock:
            return list(self._lines)

    def _stand_in_line(
        self, mark: Mark, alarm: "ThreadAlarm | TaskAlarm", timeout_s: float, due_in_s: float | None, poll_s: float | None
    ) -> bool:
        """Go to sleep in the line, unless the mark is stale: then the flow asks again and keeps what it was woken by."""
        mark.deadline, mark.alarm = self._now() + timeout_s, alarm
        due_now = self._due_now()
        due_at = due_now + min(math.inf if due_in_s is None else due_in_s, math.inf if poll_s is None else poll_s)
        with self._lock:
            self._refuse_if_closed()
            line = self._join(mark)
            is_stale = self._is_stale(mark, line)
            mark.heard = line.heard
            if not is_stale:
                line.lie_down(mark, due_at, due_now)
        return not is_stale

    def _take_in(self, mark: Mark) -> None:
        mark.is_out = False
        self.marked.pop()

    def _join(self, mark: Mark) -> "Line":
        if not mark.is_out:
            mark.is_out = True
            self.marked.append(None)
        if (line := mark.line) is not None and self._lines.get(mark.topic) is line:
            return line
        line = self._lines.get(mark.topic) or Line()
        line.members += 1
        # Stored even if it came from there: a finalizer may just have seen its last member leave.
        self._lines[mark.topic] = line
        mark.line = line
        return line

    def _is_stale(self, mark: Mark, line: "Line | None") -> bool:
        """Whether a hint came since the mark was taken or last woken; for a mark new in the line, perhaps one of another topic."""
        return (line is None or mark.heard is not line.heard) and mark.heard is not self._heard[hash(mark.topic) % SLOTS]

    def _nap_s(self, mark: Mark) -> float | None:
        """How long to sleep before looking again, or None to return to the flow."""
        left_s, due_now = mark.deadline - self._now(), self._due_now()
        with self._lock:
            self._refuse_if_closed()
            if (line := mark.line) is None or mark not in line.asleep:
                return None
            due_in_s = line.due_at - due_now if line.keeper is mark else math.inf
            if due_in_s <= 0:
                line.wake_by_time(mark)
                return None
            if left_s > 0:
                return min(left_s, due_in_s, LONGEST_NAP_S)
            to_ring = line.get_up(mark)
        self._ring(to_ring)
        return None

    def _step_out(self, mark: Mark) -> None:
        """Sleep no longer: the wait was cancelled or interrupted."""
        with self._lock:
            to_ring = mark.line.get_up(mark) if mark.line else []
        self._ring(to_ring)

    def _nudge(self, mark: Mark) -> None:
        with self._lock:
            if mark.line is not None and mark in mark.line.asleep:
                to_ring = [mark, *mark.line.get_up(mark)]
            else:
                mark.heard, to_ring = None, []  # Stale: the next wait returns.
        self._ring(to_ring)

    def _begin_anew(self, mark: Mark) -> None:
        with self._lock:
            mark.heard = self._heard[hash(mark.topic) % SLOTS] if mark.line is None else mark.line.heard

    def _used(self, mark: Mark) -> None:
        with self._lock:
            woken_by, mark.woken_by = mark.woken_by, None
            line = self._lines.get(mark.topic)
            if line is None or woken_by != "time":
                return
            # As much as you like may become due at one moment, so a waiter that was woken by time and found something wakes the next.
            to_ring = self._pass_on(line, woken_by)
        self._ring(to_ring)

    def _leave(self, mark: Mark) -> list[Mark]:
        """Take the mark out of its line; return who must be told."""
        if mark.is_out:
            self._take_in(mark)
        with self._lock:
            line, woken_by, mark.line, mark.woken_by = mark.line, mark.woken_by, None, None
            if line is None:
                return []
            to_ring = line.get_up(mark)
            mark.heard = None  # Stale, should it be waited on again.
            if woken_by:
                to_ring += self._pass_on(line, woken_by)
            self._sign_off(mark.topic, line)
        return to_ring

    def _sign_off(self, topic: str, line: "Line") -> None:
        """One member less; the last takes the line with it."""
        line.members -= 1
        if not line.members and self._lines.get(topic) is line:
            del self._lines[topic]

    def _pass_on(self, line: "Line", woken_by: WokenBy) -> list[Mark]:
        return line.wake(1, woken_by)

    def _ring(self, to_ring: Iterable[Mark]) -> None:
        """Ring the alarms, without the lock. Whose event loop is closed has left, and the next is told instead."""
        queue = list(to_ring)
        for mark in queue:
            if mark.alarm is not None and not mark.alarm.ring():
                queue += self._leave(mark)

    def _clear(self) -> list[Mark]:
        lines, self._lines = self._lines, {}
        sleepers = [mark for line in lines.values() for mark in line.asleep]
        for line in lines.values():
            line.asleep = OrderedDict()
        return sleepers

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Closed("The store was closed; open it again to wait on it.")


def seldom(poll_s: float | None) -> float | None:
    """How often to ask in vain where every hint arrives."""
    return None if poll_s is None else max(poll_s, SLOW_POLL_S)


def waiters_for(clock: Clock | None) -> Waiters:
    """Make the waiters of a store on this clock, or without one on its server's.

    If a test owns the clock, due moments follow it; time-outs stay real, so no wait hangs.
    """
    if not isinstance(clock, MovableClock):
        return Waiters()
    waiters = Waiters(due_now=lambda: clock.now_us() / 1_000_000)
    waiters.clock = clock
    clock.subscribe(waiters.clock_moved)
    return waiters
