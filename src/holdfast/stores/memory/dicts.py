"""The dicts in memory: entries, ordered by key text on demand, and fences."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from holdfast.records import NO_VALUE, Entry
from holdfast.stores.memory.schedule import Schedule

LITTLE = 100
"""Sorting all keys costs as much as putting so small a part of them in its place."""


class MemoryDict:
    """One dict. Entries past their time are still in it: readers compare."""

    __slots__ = ("_order", "_unordered", "entries", "fences", "timed_count")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.fences: dict[str, int] = {}
        """The highest fence that wrote each key, deleted or not."""
        self.timed_count: int = 0
        """How many entries have a time to live."""
        # The keys that were there when somebody last asked for an order, and those that came since. Some may be gone, or have come twice.
        self._order: list[str] = []
        self._unordered: list[str] = []

    def enter(self, entry: Entry) -> None:
        if entry.key not in self.entries:
            self._unordered.append(entry.key)
        self.entries[entry.key] = entry

    def leave(self, key: str) -> None:
        self.entries.pop(key, None)
        if len(self._order) + len(self._unordered) > 2 * len(self.entries) + 64:
            self._order, self._unordered = [], list(self.entries)

    def forget_order(self, *, timed_count: int) -> None:
        """Work out the order again when it is asked for."""
        self._order, self._unordered, self.timed_count = [], list(self.entries), timed_count

    def in_order(self, prefix: str, after: str | None) -> Iterator[Entry]:
        """The entries whose key begins with the prefix, by key, behind `after`."""
        if self._unordered:
            self._put_in_order()
        first = bisect_left(self._order, prefix)
        if after is not None:
            first = max(first, bisect_right(self._order, after))
        for i in range(first, len(self._order)):
            key = self._order[i]
            if not key.startswith(prefix):
                return
            if key in self.entries:
                yield self.entries[key]

    def _put_in_order(self) -> None:
        """Take in what was written since: one by one while that is little, else by sorting everything."""
        order, keys, self._unordered = self._order, self._unordered, []
        if len(keys) * LITTLE > len(order):
            self._order = sorted({*order, *keys})
            return
        for key in keys:
            place = bisect_left(order, key)
            if place == len(order) or order[place] != key:
                order.insert(place, key)


class Dicts:
    """All dicts, and which of their entries time ends next."""

    def __init__(self) -> None:
        self._dicts: dict[str, MemoryDict] = {}
        # The entries with a time to live, by their revisions, which no two entries share.
        self._timed: dict[int, Entry] = {}
        self._expiries = Schedule(lambda _, revision: revision in self._timed)

    def each(self) -> Iterable[tuple[str, MemoryDict]]:
        return self._dicts.items()

    def get(self, name: str) -> MemoryDict | None:
        return self._dicts.get(name)

    def made(self, name: str) -> MemoryDict:
        """The dict; a new, empty one if need be."""
        found = self._dicts.get(name)
        if found is None:
            found = self._dicts[name] = MemoryDict()
        return found

    def save(self, entry: Entry) -> None:
        found = self.made(entry.dict)
        self._forget_time(found, found.entries.get(entry.key))
        if entry.fence:
            found.fences[entry.key] = entry.fence
        if entry.value is NO_VALUE:
            found.leave(entry.key)
            return
        found.enter(entry)
        if entry.expires_at is not None:
            found.timed_count += 1
            self._timed[entry.revision] = entry
            self._expiries.add(entry.expires_at, entry.revision)

    def rebuild(self) -> None:
        """Work out everything that is known of the entries from them again."""
        self._timed.clear()
        self._expiries.empty()
        for found in self._dicts.values():
            timed = [entry for entry in found.entries.values() if entry.expires_at is not None]
            found.forget_order(timed_count=len(timed))
            for entry in timed:
                self._timed[entry.revision] = entry
                self._expiries.add(entry.expires_at or 0, entry.revision)

    def stale(self, now: int, limit: int) -> list[Entry]:
        """Entries past their time, the longest first."""
        return [self._timed[revision] for revision in self._expiries.upto(now, limit)]

    def _forget_time(self, found: MemoryDict, entry: Entry | None) -> None:
        if entry is not None and entry.expires_at is not None:
            found.timed_count -= 1
            del self._timed[entry.revision]
            self._expiries.leave(entry.revision)
