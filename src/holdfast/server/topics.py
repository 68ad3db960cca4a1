"""Lets clients wait on topics of the store, by marks that they carry: the server remembers topics, never clients.

A topic that somebody asked for is listened to, and counts what it was hinted for. Its mark is that count, under a name that no other
listening has; a mark of another name (another server's, or of before the topic was forgotten) is stale, and answered at once.
"""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from secrets import token_hex

from holdfast.stores import Store
from holdfast.stores.http.protocol import Asked, Heard
from holdfast.stores.waiting import ALL

_COUNT = re.compile(r"[0-9]{1,40}")

KEPT_S = 60.0
"""How long a topic is listened to after the last client that waited on it."""

ANNOUNCE_S = 1.0
"""The longest that a client's first wait takes until the store hears of its topic."""


class Topics:
    """The topics of one store that clients wait on; used on one event loop, hinted from any thread."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._epoch = token_hex(6)
        self._serial = 0
        self._topics: dict[str, _Topic] = {}
        # Topics that nobody waits on, and since when; the oldest first.
        self._idle: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        """How many topics are listened to."""
        return len(self._topics)

    async def wait(self, asked: Sequence[Asked], timeout_s: float) -> list[Heard]:
        """Return what was hinted since the marks, as soon as there is any; nothing at the time-out."""
        self._forget_idle()
        topics = [self._topic(each.topic) for each in asked]
        await _announced(topics)
        bell: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, _ring, bell)
        for topic in topics:
            topic.bells.add(bell)
        try:
            if not (heard := self._heard(asked, topics)):
                await bell
                heard = self._heard(asked, topics)
        finally:
            timer.cancel()
            for topic in topics:
                topic.bells.discard(bell)
                if not topic.bells:
                    self._idle[topic.name] = self._now()
                    self._idle.move_to_end(topic.name)
        return heard

    def close(self) -> None:
        """Listen to nothing any more."""
        for topic in self._topics.values():
            topic.stop()
        self._topics.clear()

    def _heard(self, asked: Sequence[Asked], topics: "Sequence[_Topic]") -> list[Heard]:
        heard = (topic.since(each.mark) for each, topic in zip(asked, topics, strict=True))
        return [each for each in heard if each is not None]

    def _topic(self, name: str) -> "_Topic":
        topic = self._topics.get(name)
        if topic is None:
            self._serial += 1
            topic = self._topics[name] = _Topic(name, f"{self._epoch}.{self._serial}")
            self._store.mark(name).leave()  # The store may have to begin to listen itself.
            topic.stop = self._store.waiters.listen(name, lambda count: self._hint(topic, count))
            topic.announced = self._store.waiters.announce(name)
        self._idle.pop(name, None)
        return topic

    def _hint(self, topic: "_Topic", count: int) -> None:
        """Take a hint, in whatever thread it is given."""
        try:
            self._loop.call_soon_threadsafe(topic.hint, count)
        except RuntimeError:
            topic.stop()  # The loop is closed: nobody waits any more.

    def _forget_idle(self) -> None:
        before = self._now() - KEPT_S
        while self._idle and next(iter(self._idle.values())) < before:
            name, _ = self._idle.popitem(last=False)
            self._topics.pop(name).stop()


async def _announced(topics: "Sequence[_Topic]") -> None:
    """Let the store hear of the topics before a client is told that it waits; where it cannot for now, waiting is polling."""
    under_way = [asyncio.wrap_future(topic.announced) for topic in topics if topic.announced is not None and not topic.announced.done()]
    if under_way:
        await asyncio.wait(under_way, timeout=ANNOUNCE_S)


class _Topic:
    """What was hinted on one topic since it is listened to."""

    __slots__ = ("_count", "_listening", "announced", "bells", "name", "stop")

    def __init__(self, name: str, listening: str) -> None:
        self.name = name
        self._listening = listening
        self._count = 0
        self.bells: set[asyncio.Future[None]] = set()
        self.announced: Future[None] | None = None
        self.stop: Callable[[], None] = lambda: None

    def hint(self, count: int) -> None:
        self._count += count
        for bell in self.bells:
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
