"""Waits on topics of the store by marks that clients carry; the server keeps no state of clients.

A topic that a caller asked for is listened to, and counts what it was hinted for. Its mark is that count, under a name that no other
listening has; a mark of another name (another server's, or of before the topic was forgotten) is stale, and answered at once.
"""

import asyncio
import re
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from secrets import token_hex
from typing import Final

from holdfast.commands.hints import ALL
from holdfast.server.load.body_budget import PIECE, Budget
from holdfast.stores import Store
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import Asked, Heard

_COUNT = re.compile(r"[0-9]{1,40}")

KEPT_S = 60.0
"""How long a topic is listened to after the last client that waited on it."""

MOST: Final = 100_000
MOST_EACH: Final = 50_000
"""How many topics are listened to, in all and of each caller; a topic is of who first asked for it."""

_RETRY = ((b"retry-after", b"5"),)

FORGOTTEN: Final = 2 * PIECE
"""How many idle topics of each caller are forgotten in one go."""

HEARD_AT_ONCE: Final = 500
"""How many topics are looked at in one go."""

ANNOUNCE_S = 1.0
"""The longest that a client's first wait takes until the store hears of its topic."""

SIGN_ON_S: Final = 5.0
"""So long, or as long as it may wait, a client's topics are taken in; of many it then asks for the rest again."""


class Topics:
    """The topics of one store that clients wait on; used on one event loop, hinted from any thread."""

    def __init__(
        self,
        store: Store,
        budget: Budget,
        most: int = MOST,
        most_each: int = MOST_EACH,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._budget = budget
        self._most = most
        self._most_each = most_each
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._epoch = token_hex(6)
        self._serial = 0
        self._topics: dict[str, _Topic] = {}
        # Of each caller: how many topics are theirs, and those of them that nobody waits on, and since when; the oldest first.
        self._counts: Counter[str] = Counter()
        self._idle: defaultdict[str, OrderedDict[str, float]] = defaultdict(OrderedDict)

    def __len__(self) -> int:
        """How many topics are listened to."""
        return len(self._topics)

    async def wait(self, owner: str, asked: Sequence[Asked], timeout_s: float) -> list[Heard]:
        """Return what was hinted since the marks, as soon as there is any; nothing at the time-out."""
        topics: list[_Topic] = []
        bell: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, _ring, bell)
        ends_at = self._loop.time() + max(timeout_s, SIGN_ON_S)
        try:
            async for piece in self._budget.in_pieces(owner, asked, _Announcing(topics)):
                self._forget_idle(self._now() - KEPT_S)
                self._make_room(owner, {each.topic for each in piece})
                for each in piece:
                    topics.append(self._topic(owner, each.topic))
                    topics[-1].add(bell)
                if self._loop.time() >= ends_at:
                    break  # The client asks again for the others.
            if not (heard := await self._heard(asked, topics)):
                await bell
                heard = await self._heard(asked, topics)
        finally:
            timer.cancel()
            for topic in topics:
                if topic.remove(bell):
                    self._idle[topic.owner][topic.name] = self._now()
                    self._idle[topic.owner].move_to_end(topic.name)
        return heard

    def close(self) -> None:
        """Listen to nothing any more."""
        for topic in self._topics.values():
            topic.stop()
        self._topics.clear()

    async def _heard(self, asked: Sequence[Asked], topics: "Sequence[_Topic]") -> list[Heard]:
        heard: list[Heard] = []
        for number, (each, topic) in enumerate(zip(asked, topics, strict=False), 1):
            if (since := topic.since(each.mark)) is not None:
                heard.append(since)
            if number % HEARD_AT_ONCE == 0:
                await asyncio.sleep(0)  # What is hinted meanwhile rings the bell.
        return heard

    def _make_room(self, owner: str, names: set[str]) -> None:
        """Forget topics without waiters, the caller's own first, where there are too many; refuse the wait if that is not enough."""
        self._drop(owner, self._counts[owner] + self._new(names) - self._most_each)
        if self._counts[owner] + self._new(names) > self._most_each:
            detail = f"this caller already waits on {self._counts[owner]:,} topics, and {self._most_each:,} are allowed: wait on fewer"
            raise WireError("too_many_requests", 429, detail, _RETRY)
        for other in (owner, *list(self._idle)):
            self._drop(other, len(self._topics) + self._new(names) - self._most)
        if len(self._topics) + self._new(names) > self._most:
            raise WireError("too_many_requests", 503, f"{len(self._topics):,} topics are already waited on here: try again later", _RETRY)

    def _new(self, names: set[str]) -> int:
        # Not as a difference of sets: that goes through all the topics there are.
        return sum(name not in self._topics for name in names)

    def _drop(self, owner: str, count: int) -> None:
        for _ in range(min(count, len(self._idle[owner]))):
            self._forget(owner)

    def _topic(self, owner: str, name: str) -> "_Topic":
        topic = self._topics.get(name)
        if topic is None:
            self._serial += 1
            topic = self._topics[name] = _Topic(name, owner, f"{self._epoch}.{self._serial}", self._loop)
            self._counts[owner] += 1
            self._store.mark(name).leave()  # The store may have to begin to listen itself.
            topic.stop = self._store.waiters.listen(name, topic)
            topic.announced = self._store.waiters.announce(name)
        self._idle[topic.owner].pop(name, None)
        return topic

    def _forget_idle(self, before: float) -> None:
        for owner, idle in list(self._idle.items()):
            for _ in range(FORGOTTEN):
                if not idle or next(iter(idle.values())) >= before:
                    break
                self._forget(owner)
            if not idle:
                del self._idle[owner]

    def _forget(self, owner: str) -> None:
        """Listen no more to the topic of theirs that was idle for longest."""
        name, _ = self._idle[owner].popitem(last=False)
        self._topics.pop(name).stop()
        self._counts[owner] -= 1
        if not self._counts[owner]:
            del self._counts[owner]


class _Announcing:
    """Lets the store hear of the topics before a client is told that it waits; where it cannot for now, waiting is polling."""

    def __init__(self, topics: "Sequence[_Topic]") -> None:
        self._topics = topics
        self._is_heard = True

    async def __call__(self) -> None:
        """Wait until it has heard of those of the latest piece."""
        new = [topic for topic in self._topics[-PIECE:] if topic.announced is not None]
        if new and self._is_heard:
            under_way = [asyncio.wrap_future(topic.announced) for topic in new if topic.announced is not None]
            self._is_heard = not (await asyncio.wait(under_way, timeout=ANNOUNCE_S))[1]
        for topic in new:
            if topic.announced is not None and topic.announced.done():
                topic.announced = None


def _nothing() -> None:
    """Stop what has not begun."""


class _Topic:
    """What was hinted on one topic since it is listened to. Of few objects: there are many topics, and the collector looks at each."""

    __slots__ = ("_bells", "_count", "_listening", "_loop", "announced", "name", "owner", "stop")

    def __init__(self, name: str, owner: str, listening: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.owner = owner
        self._listening = listening
        self._loop = loop
        self._count = 0
        self._bells: set[asyncio.Future[None]] | None = None
        self.announced: Future[None] | None = None
        self.stop: Callable[[], None] = _nothing

    def __call__(self, count: int) -> None:
        """Take a hint, in whatever thread it is given."""
        try:
            self._loop.call_soon_threadsafe(self._hint, count)
        except RuntimeError:
            self.stop()  # The loop is closed: nobody waits any more.

    def add(self, bell: "asyncio.Future[None]") -> None:
        """Ring the bell at every hint."""
        if self._bells is None:
            self._bells = set()
        self._bells.add(bell)

    def remove(self, bell: "asyncio.Future[None]") -> bool:
        """Ring it no more; whether no one waits now."""
        if self._bells is not None:
            self._bells.discard(bell)
        if not self._bells:
            self._bells = None
        return self._bells is None

    def _hint(self, count: int) -> None:
        self._count += count
        for bell in self._bells or ():
            _ring(bell)

    def since(self, mark: str | None) -> Heard | None:
        """What was hinted after the mark; None if nothing was."""
        now = f"{self._listening}:{self._count}"
        if mark == now:
            return None
        listening, _, heard = (mark or "").rpartition(":")
        if listening != self._listening or not _COUNT.fullmatch(heard):
            return Heard(self.name, now)
        count = self._count - int(heard)
        return Heard(self.name, now, count if 0 < count < ALL else None)


def _ring(bell: "asyncio.Future[None]") -> None:
    if not bell.done():
        bell.set_result(None)
