"""Reading schedules: all of them, one of them, or again and again what changed."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from holdfast.codec import decode_key, encode_key, key_prefix
from holdfast.commands import Change, Changes, Read, Write
from holdfast.commands.topics import dict_topic
from holdfast.errors import Compacted
from holdfast.records import Entry
from holdfast.schedules.entries import SCHEDULES, ScheduleEntry, entry_of
from holdfast.stores import AsyncStore
from holdfast.views.watch_subjects import facts_of

PAGE = 200
"""How many events, or schedules, are read at once."""


class Stored(Struct, frozen=True):
    """A schedule as it was read, under its name."""

    name: str
    entry: ScheduleEntry
    revision: int

    def write(self, entry: ScheduleEntry) -> Write:
        """Store it, unless it was changed since it was read."""
        return Write(SCHEDULES, [Change(encode_key(self.name), value=entry.raw, expect="revision", revision=self.revision)])


async def schedule_page(store: AsyncStore, prefix: str = "", after: str | None = None, limit: int = PAGE) -> tuple[list[Stored], bool]:
    """Schedules whose names begin so, in order of their names, behind one of them; and whether there are more."""
    behind = None if after is None else encode_key(after)
    page = await store.execute(Read(SCHEDULES, prefix=key_prefix(prefix), after=behind, limit=limit))
    return [*map(_stored, page.entries)], page.more


async def schedules_of(store: AsyncStore, prefix: str = "") -> list[Stored]:
    """Every schedule whose name begins so, in order of their names."""
    found, more = await schedule_page(store, prefix)
    while more:
        page, more = await schedule_page(store, prefix, found[-1].name)
        found += page
    return found


async def schedule_of(store: AsyncStore, name: str) -> Stored | None:
    """The schedule of this name, None if there is none."""
    entries: list[Entry] = (await store.execute(Read(SCHEDULES, [encode_key(name)]))).entries
    return _stored(entries[0]) if entries else None


class AsyncScheduleBook:
    """The schedules of a store, for one who looks at them often: after the first time only what changed is read."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._known: dict[str, Stored] = {}
        self._index: int | None = None
        """The event up to which they are known."""

    async def read(self) -> Mapping[str, Stored]:
        """All of them by their names, as they are now."""
        if self._index is None or not await self._follow(self._index):
            await self._read_all()
        return self._known

    async def _read_all(self) -> None:
        page = await self._store.execute(Read(SCHEDULES, anchor=True))
        index, entries = page.index, list(page.entries)
        while page.more:
            page = await self._store.execute(Read(SCHEDULES, after=page.entries[-1].key))
            entries += page.entries
        self._known = {stored.name: stored for stored in map(_stored, entries)}
        # What changed while the pages were read is read again.
        self._index = index

    async def _follow(self, index: int) -> bool:
        """Read what changed since an event; False if all has to be read."""
        while True:
            try:
                page = await self._store.execute(Changes(dict_topic(SCHEDULES), index, PAGE))
            except Compacted:
                return False
            changed = [facts_of(event).get("key") for event in page.events]
            if None in changed or (changed and not await self._read_again({str(key): None for key in changed})):
                return False
            self._index = index = page.upto
            if page.upto >= page.latest:
                return True

    async def _read_again(self, keys: Iterable[str]) -> bool:
        page = await self._store.execute(Read(SCHEDULES, [*keys]))
        if page.more:
            return False
        for key in keys:
            self._known.pop(str(decode_key(key)), None)
        self._known |= {stored.name: stored for stored in map(_stored, page.entries)}
        return True


def _stored(entry: Entry) -> Stored:
    return Stored(str(decode_key(entry.key)), entry_of(entry.value), entry.revision)
