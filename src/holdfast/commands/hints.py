"""Hints to those who wait, which a store gives once the step is durable."""

from typing import Final

ALL: Final = 1 << 30
"""Wakes every waiter of a topic."""


class Hints(dict[str, int]):
    """How many waiters to wake, by topic."""

    def wake(self, topic: str, count: int) -> None:
        """Wake so many more waiters of the topic."""
        self[topic] = self.get(topic, 0) + count
