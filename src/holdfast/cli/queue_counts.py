"""The sizes of all queues, by the command that counts a page of them at once."""

from collections.abc import Iterator
from typing import Final

from holdfast.commands import Counts
from holdfast.commands.counting import QueueCount
from holdfast.stores import Store

PAGE: Final = 1_000


def queue_counts(store: Store, prefix: str = "") -> Iterator[QueueCount]:
    """Each queue whose name begins so, in order of the names."""
    after: str | None = None
    while True:
        found = store.execute(Counts(prefix, after, PAGE))
        yield from found.queues
        if not found.more:
            return
        after = found.queues[-1].name
