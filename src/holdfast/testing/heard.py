"""The topics on which a store wakes those who wait for messages."""

from functools import partial
from threading import Condition
from typing import Final

from holdfast.stores import Store

AT_ONCE: Final = ("memory", "sqlite", "lmdb")
"""Stores whose hints are heard in their process before the command returns."""
LATER: Final = ("redis", "postgresql")
"""Stores whose server tells, soon after the command."""

LATER_S: Final = 5.0
"""A hint that comes later is missed."""


class Heard:
    """Hears from now on what a store wakes claimers for, on each of some topics."""

    def __init__(self, store: Store, topics: tuple[str, ...]) -> None:
        kind = store.url.partition(":")[0]
        self.is_later: bool = kind in LATER
        """Whether the server tells, soon after the command."""
        self._is_deaf = kind not in AT_ONCE and not self.is_later
        # Guards the topics that were heard; told when there is one more.
        self._changed = Condition()
        self._topics: set[str] = set()
        for topic in topics:
            store.waiters.listen(topic, partial(self._add, topic))
        if self.is_later:
            for topic in topics:
                store.mark(topic).leave()
                store.waiters.announce(topic)
            # Once the server tells of a topic, everyone on it is woken.
            self.missing(set(topics))

    def _add(self, topic: str, count: int) -> None:
        if count < 1:
            return
        with self._changed:
            self._topics.add(topic)
            self._changed.notify_all()

    def take(self) -> set[str]:
        """What was heard since it was asked last."""
        with self._changed:
            taken, self._topics = self._topics, set()
            return taken

    def missing(self, expected: set[str]) -> set[str]:
        """Which of these were not heard since it was asked last; what a server tells is waited for."""
        if self._is_deaf:
            return set()
        with self._changed:
            self._changed.wait_for(lambda: expected <= self._topics, LATER_S if self.is_later else 0.0)
        return expected - self.take()
