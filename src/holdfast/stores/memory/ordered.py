"""Things in an order that changes: slots that are stale are dropped when they come up."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

Slot = TypeVar("Slot", bound=tuple[Any, ...])

SPARE = 64
"""So many slots may be stale before it is worth looking whether most are."""


class Ordered(Generic[Slot]):
    """Slots that sort; whatever changes its place gets a new slot, and the old one is stale. Adding and taking cost O(log n)."""

    __slots__ = ("_heap", "_is_current", "_rebuild_at")

    def __init__(self, is_current: Callable[[Slot], bool]) -> None:
        self._is_current = is_current
        self._heap: list[Slot] = []
        self._rebuild_at = SPARE

    def add(self, slot: Slot) -> None:
        if len(self._heap) >= self._rebuild_at:
            current = {one for one in self._heap if self._is_current(one)}
            heap = list(current)
            heapify(heap)
            self._heap, self._rebuild_at = heap, 2 * len(heap) + SPARE
        heappush(self._heap, slot)

    def first(self, limit: int, upto: Slot | None = None) -> list[Slot]:
        """The first slots, at most `limit` of them, that sort no later than `upto`."""
        taken: list[Slot] = []
        heap = self._heap
        while heap and len(taken) < limit and (upto is None or heap[0] <= upto):
            slot = heappop(heap)
            if self._is_current(slot) and (not taken or taken[-1] != slot):
                taken.append(slot)
        for slot in taken:
            heappush(heap, slot)
        return taken

    def empty(self) -> None:
        self._heap, self._rebuild_at = [], SPARE
