"""The dicts in memory: entries, in order of their key text where somebody asks for it, and what they know of fences."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from holdfast.records import Entry
from holdfast.stores.memory.schedule import Schedule


class MemoryDict:
    """One dict. Entries past their time are still in it: whoever reads compares."""

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
        if entry.fence:
            self.raise_fence(entry.key, entry.fence)

    def raise_fence(self, key: str, fence: int) -> None:
        self.fences[key] = max(fence, self.fences.get(key, 0))

    def leave(self, key: str) -> None:
        del self.entries[key]
        if len(self._order) + len(self._unordered) > 2 * len(self.entries) + 64:
            self._order, self._unordered = [], list(self.entries)

    def in_order(self, prefix: str, after: str | None) -> Iterator[Entry]:
        """The entries whose key begins with the prefix, by key, behind `after`."""
        if self._unordered:
            self._order = sorted({*self._order, *self._unordered})
            self._unordered = []
        first = bisect_left(self._order, prefix)
        if after is not None:
            first = max(first, bisect_right(self._order, after))
        for i in range(first, len(self._order)):
            key = self._order[i]
            if not key.startswith(prefix):
                return
            if key in self.entries:
                yield self.entries[key]


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

    def save(self, entry: Entry) -> None:
        found = self._dicts.setdefault(entry.dict, MemoryDict())
        self._forget_time(found, found.entries.get(entry.key))
        found.enter(entry)
        if entry.expires_at is not None:
            found.timed_count += 1
            self._timed[entry.revision] = entry
            self._expiries.add(entry.expires_at, entry.revision)

    def delete(self, name: str, key: str, fence: int) -> None:
        found = self._dicts.setdefault(name, MemoryDict())
        if fence:
            found.raise_fence(key, fence)
        if key in found.entries:
            self._forget_time(found, found.entries[key])
            found.leave(key)

    def stale(self, now: int, limit: int) -> list[Entry]:
        """Entries past their time, the longest first."""
        return [self._timed[revision] for revision in self._expiries.upto(now, limit)]

    def _forget_time(self, found: MemoryDict, entry: Entry | None) -> None:
        if entry is not None and entry.expires_at is not None:
            found.timed_count -= 1
            del self._timed[entry.revision]
            self._expiries.leave(entry.revision)
