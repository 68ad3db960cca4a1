"""Numbers ordered by time: ready messages by position, leases by their end."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, merge, nsmallest
from itertools import groupby, islice

Slot = tuple[int, int]
"""A moment and the number of a message; slots sort in that order."""

SPARE = 64
"""So many slots may be stale before it is worth looking whether most are."""


class Schedule:
    """Slots that are mostly added at the end and taken at the beginning, in any order if need be.

    Leaving from the middle leaves a stale slot behind, which is dropped when it comes up. Stale slots never outnumber the others
    by more than `SPARE`, so that adding, leaving and taking cost O(log n), paid over time.
    """

    # The store's lock guards all of it; the fast path reaches into `line` and `heap` itself.
    __slots__ = ("_is_current", "count", "heap", "line")

    def __init__(self, is_current: Callable[[int, int], bool]) -> None:
        self._is_current = is_current
        self.line: deque[Slot] = deque()
        """Sorted, because each slot was added behind all others."""
        self.heap: list[Slot] = []
        """What came out of order, or lies ahead and would push later ones out of order."""
        self.count: int = 0
        """How many belong in here."""

    def add(self, moment: int, n: int, *, ahead: bool = False) -> None:
        self.count += 1
        line = self.line
        if ahead or (line and line[-1] > (moment, n)):
            heappush(self.heap, (moment, n))
        else:
            line.append((moment, n))

    def leave(self, n: int) -> None:
        """Count one less; its slot is stale from now on."""
        self.count -= 1
        line = self.line
        if line and line[0][1] == n:
            line.popleft()
        elif len(line) + len(self.heap) > 2 * self.count + SPARE:
            self.compact()

    def is_due(self, now: int) -> bool:
        """Whether the earliest slot is no later than now. Costs less than `first`, and cleans up only where it must."""
        line, heap = self.line, self.heap
        if (not line or line[0][0] > now) and (not heap or heap[0][0] > now):
            return False
        first = self.first()
        return first is not None and first[0] <= now

    def first(self) -> Slot | None:
        """The earliest slot."""
        line, heap = self.line, self.heap
        while line and not self._is_current(*line[0]):
            line.popleft()
        while heap and not self._is_current(*heap[0]):
            heappop(heap)
        if not line or not heap:
            return line[0] if line else heap[0] if heap else None
        return min(line[0], heap[0])

    def upto(self, moment: int, limit: int) -> list[int]:
        """The first numbers, at most `limit`, of slots no later than the moment."""
        if not self.heap and (numbers := self._at_once(moment, limit)) is not None:
            return numbers
        taken: list[Slot] = []
        try:
            self._take(moment, limit, taken)
        finally:
            # They come before all others, so the line stays sorted. One call, so that an interrupt comes before or after it.
            self.line.extendleft(taken[::-1])
        return [n for _, n in taken]

    def _at_once(self, moment: int, limit: int) -> list[int] | None:
        """The same, of a line from which none of them has left; None where one has."""
        numbers: list[int] = []
        for position, n in islice(self.line, limit):
            if position > moment:
                break
            if not self._is_current(position, n) or (numbers and numbers[-1] == n):
                return None
            numbers.append(n)
        return numbers

    def behind(self, slot: Slot, limit: int) -> list[int]:
        """The first numbers, at most `limit`, of slots behind this one; costs by those before it, and by all that came out of order."""
        others = {one for one in self.heap if one > slot and self._is_current(*one)}
        in_order = islice(self.line, bisect_right(self.line, slot), None)
        current = (one for one in in_order if one not in others and self._is_current(*one))
        # Who left and came back to the same moment has two slots.
        different = (one for one, _ in groupby(merge(current, nsmallest(limit, others))))
        return [n for _, n in islice(different, limit)]

    def after(self, moment: int) -> int | None:
        """The first moment of a slot behind this one; costs by how many come before it."""
        taken: list[Slot] = []
        try:
            self._take(moment, self.count, taken)
            first = self.first()
        finally:
            self.line.extendleft(taken[::-1])
        return None if first is None else first[0]

    def count_after(self, moment: int) -> int:
        """How many slots lie behind a moment; costs by those that came out of order and are due.

        With stale slots it costs by the smaller of those that were added in order and those that were not.
        """
        line, heap = self.line, self.heap
        if not heap and (not line or line[-1][0] <= moment):
            return 0
        if line and line[-1][0] > moment:
            return sum(1 for slot in {*line, *heap} if slot[0] > moment and self._is_current(*slot))
        if len(line) + len(heap) == self.count:
            # No slot is stale.
            return len(heap) - sum(1 for _ in self._heaped_upto(moment))
        if len(heap) <= len(line):
            known = {slot for slot in heap if slot[0] > moment}
            return sum(1 for slot in known if self._is_current(*slot))
        due = {*line, *self._heaped_upto(moment)}
        return self.count - sum(1 for slot in due if self._is_current(*slot))

    def _heaped_upto(self, moment: int) -> Iterator[Slot]:
        """The slots of the heap no later than the moment: none of them lies below a later one."""
        heap, places = self.heap, [0]
        while places:
            place = places.pop()
            if place < len(heap) and heap[place][0] <= moment:
                yield heap[place]
                places += (2 * place + 1, 2 * place + 2)

    def compact(self) -> None:
        """Forget every stale slot."""
        known = dict.fromkeys(self.line)
        line = deque(slot for slot in known if self._is_current(*slot))
        heap = [slot for slot in set(self.heap) if slot not in known and self._is_current(*slot)]
        heapify(heap)
        # Without a call in between, so that no interrupt comes there either.
        self.line, self.heap = line, heap

    def empty(self) -> None:
        """Forget every slot."""
        self.line, self.heap, self.count = deque(), [], 0

    def _take(self, moment: int, limit: int, taken: list[Slot]) -> None:
        while len(taken) < limit:
            slot = self.first()
            if slot is None or slot[0] > moment:
                break
            # In this order: an interrupt in between leaves it twice, which does no harm, and not never.
            taken.append(slot)
            self._drop(slot)

    def _drop(self, slot: Slot) -> None:
        """Take out the earliest slot, and its twins: who left and came back to the same moment has two."""
        while self.line and self.line[0] == slot:
            self.line.popleft()
        while self.heap and self.heap[0] == slot:
            heappop(self.heap)
