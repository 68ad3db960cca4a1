"""The age of data cached from the server's own dicts: ended by hints, and by time because hints may be lost."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.stores import Store


class Asked(Struct, frozen=True):
    """When something was asked for: after how many hints, and the moment before."""

    hints: int
    at: float


class Hints:
    """The hints of one dict; asked on one event loop, hinted from any thread."""

    def __init__(self, store: Store, name: str, fresh_s: float, now: Callable[[], float]) -> None:
        self._fresh_s = fresh_s
        self._now = now
        self._count = 0
        self._tell: Callable[[], object] = lambda: None
        topic = watch_topic(dict_topic(name))
        store.mark(topic).leave()  # The store may have to begin to listen itself.
        self.close: Callable[[], None] = store.waiters.listen(topic, self._hint)
        store.waiters.announce(topic)

    def when_changed(self, loop: asyncio.AbstractEventLoop, tell: Callable[[], object]) -> None:
        """Call this on the loop after every hint."""
        self._tell = lambda: loop.call_soon_threadsafe(tell)

    def asking(self) -> Asked:
        """Say so before the question: what changes while it is under way makes the answer stale."""
        return Asked(self._count, self._now())

    def is_fresh(self, asked: Asked | None) -> bool:
        """Whether what was asked for then may be used."""
        return asked is not None and asked.hints == self._count and self._now() - asked.at < self._fresh_s

    def _hint(self, count: int) -> None:
        del count
        self._count += 1
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._tell()
