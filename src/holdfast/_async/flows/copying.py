"""Moves all data from one store to another: page by page, each read back and compared; seals the source at the end."""

from collections.abc import AsyncGenerator, Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from holdfast._async.flows.naming import all_named, entries_of, messages_of
from holdfast.commands import (
    BeginImport,
    Browse,
    Copying,
    Count,
    EndImport,
    Fences,
    Groups,
    Import,
    Leases,
    Length,
    Read,
    Resize,
    Seal,
    Stats,
    Survey,
)
from holdfast.commands.checksums import checksum_of
from holdfast.commands.filtered import cursor
from holdfast.commands.surveying import Surveyed
from holdfast.errors import Refused, StoreCorrupted, StoreMoved
from holdfast.records import State
from holdfast.records.policies import Kind, Settings
from holdfast.results import CopyProgress
from holdfast.stores import AsyncStore
from holdfast.views.copy_pages import BEGINNING, PAGE, STATES, Page, Place, Record, in_portions, without_fences
from holdfast.wording import counted

Progress = Callable[[CopyProgress], object]


class Contents(Struct):
    """What there is to copy: the queues and dicts, and how much is in each."""

    queues: list[Settings]
    dicts: list[Settings]
    messages: dict[str, int]
    entries: dict[str, int]
    histories: set[str]
    """The queues that keep messages which are done."""

    @property
    def parts(self) -> list[tuple[str, State]]:
        """The states of each queue in which there can be something."""
        return [(one.name, state) for one in self.queues for state in STATES if state != "done" or one.name in self.histories]

    @property
    def total(self) -> int:
        return sum(self.messages.values()) + sum(self.entries.values())


async def copy_all(
    source: AsyncStore,
    target: AsyncStore,
    source_name: str,
    target_name: str,
    *,
    merge: bool = False,
    progress: Progress | None = None,
    page: int = PAGE,
) -> tuple[Copying, Contents, bool]:
    """Copy, compare, and seal the source; return what the target remembers, what there was, and whether it went on from an earlier try.

    Refuses while claims or leases live in the source, a target that is not empty unless `merge`, and to seal a source that was written to
    meanwhile. Interrupted anywhere, it goes on from there when it is called again.
    """
    survey = await source.execute(Survey())
    if survey.held:
        names = ", ".join(f"{lease.key} by {lease.holder!r}" for lease in survey.held)
        raise Refused(f"leases are held in the source ({names}); nothing was copied: stop their holders, and copy again")
    contents = await contents_of(source)
    if not survey.latest and not contents.queues and not contents.dicts:
        raise Refused(f"{source_name} is empty; nothing was moved, and it was not sealed: check the URL")
    copying = await target.execute(BeginImport(f"{source_name}@{survey.latest}", survey, merge))
    is_resumed = bool(copying.place)
    async for one in pages_of(source, contents, Place.parse(copying.place), page):
        copying = await copy_page(target, copying, one)
        if progress is not None and one.records:
            progress(CopyProgress(copying.messages + copying.entries, contents.total, one.place.name))
    await _compare_counts(target, contents, merge=merge)
    is_alone = not copying.base
    target_at = (await target.execute(Survey())).latest if is_alone else None
    await _seal(source, Seal(target_name, survey.latest, target_at))
    await target.execute(EndImport())
    return copying, contents, is_resumed


async def raise_numbers(store: AsyncStore, above: int = 0) -> tuple[int, int]:
    """Go on above the clock, the newest number and `above`, as after a copy into the store; return the newest number before and after.

    It is a copy with nothing in it, so every watch starts again.
    """
    found = await store.execute(Survey())
    number = max(found.now, found.latest, above)
    await store.execute(BeginImport("numbers given out elsewhere", Surveyed(found.now, number, 0), merge=True, lost=True))
    await store.execute(EndImport())
    return found.latest, number


async def _seal(source: AsyncStore, seal: Seal) -> None:
    try:
        await source.execute(seal)
    except StoreMoved as moved:
        # Over a wire it may have been asked twice.
        if moved.url != seal.to:
            raise


async def contents_of(store: AsyncStore, *, refuse_claims: bool = True) -> Contents:
    """Count what there is; claims stand in the way of a copy, after which they would be in two stores."""
    queues, dicts = await list_names(store, "queue"), await list_names(store, "dict")
    messages, entries, histories = dict[str, int](), dict[str, int](), set[str]()
    for queue in queues:
        stats = await store.execute(Count(queue.name))
        if stats.leased and refuse_claims:
            holders = ", ".join(sorted(stats.holders)[:3])
            raise Refused(
                f"queue {queue.name!r} has {counted(stats.leased, 'claimed message')} ({holders}); nothing was copied: "
                "let the claims end, stop the workers, and copy again"
            )
        messages[queue.name] = _all_in(stats)
        if stats.done:
            histories.add(queue.name)
    for one in dicts:
        entries[one.name] = await store.execute(Length(one.name))
    return Contents(queues, dicts, messages, entries, histories)


async def list_names(store: AsyncStore, kind: Kind) -> list[Settings]:
    """Every queue or dict of a store."""
    found = {one.name: one async for one in all_named(store, kind)}
    # In this very order places are compared, whatever order the store lists names in.
    return [found[name] for name in sorted(found)]


async def pages_of(store: AsyncStore, contents: Contents, place: Place = BEGINNING, limit: int = PAGE) -> AsyncGenerator[Page, None]:
    """Everything in the source behind a place. Fences come before entries, which may raise them."""
    for page in _settings_pages([*contents.queues, *contents.dicts], place.within("settings"), limit):
        yield page
    for queue in contents.queues:
        async for page in _group_pages(store, place.within("groups", queue.name), limit):
            yield page
    for name, state in contents.parts:
        async for page in _message_pages(store, place.within("messages", name, state), limit):
            yield page
    async for page in _fence_pages(store, place.within("fences"), limit):
        yield page
    for one in contents.dicts:
        async for page in _entry_pages(store, place.within("entries", one.name), limit):
            yield page
    async for page in _capacity_pages(store, place.within("capacities"), limit):
        yield page


def _settings_pages(settings: list[Settings], place: Place | None, limit: int) -> Iterator[Page]:
    if place is None:
        return
    first = place.after[0] if place.after else 0
    for start in range(int(first), len(settings), limit):
        yield Page(replace(place, after=(start + limit,)), settings=settings[start : start + limit])


async def _message_pages(store: AsyncStore, place: Place | None, limit: int) -> AsyncGenerator[Page, None]:
    while place is not None:
        page = await store.execute(Browse(place.name, state=place.state or "ready", after=place.after, limit=limit))
        for portion in in_portions(page.messages):
            yield Page(replace(place, after=cursor(portion[-1])), messages=portion)
        place = replace(place, after=page.after) if page.after else None


async def _group_pages(store: AsyncStore, place: Place | None, limit: int) -> AsyncGenerator[Page, None]:
    while place is not None:
        page = await store.execute(Groups(place.name, after=str(place.after[0]) if place.after else None, limit=limit))
        if page.lanes:
            place = replace(place, after=(page.lanes[-1].name,))
            yield Page(place, lanes=page.lanes)
        if not page.more:
            return


async def _fence_pages(store: AsyncStore, place: Place | None, limit: int) -> AsyncGenerator[Page, None]:
    while place is not None:
        after = ("", "") if place.after is None else (str(place.after[0]), str(place.after[1]))
        fences = await store.execute(Fences(after, limit))
        if not fences:
            return
        place = replace(place, after=(fences[-1].dict, fences[-1].key))
        yield Page(place, fences=fences)


async def _entry_pages(store: AsyncStore, place: Place | None, limit: int) -> AsyncGenerator[Page, None]:
    while place is not None:
        after = None if place.after is None else str(place.after[0])
        page = await store.execute(Read(place.name, after=after, limit=limit))
        for portion in in_portions(page.entries):
            yield Page(replace(place, after=(portion[-1].key,)), entries=portion)
        place = replace(place, after=(page.entries[-1].key,)) if page.more else None


async def _capacity_pages(store: AsyncStore, place: Place | None, limit: int) -> AsyncGenerator[Page, None]:
    while place is not None:
        page = await store.execute(Leases(after=str(place.after[0]) if place.after else None, limit=limit))
        capacities = {one.key: one.capacity for one in page.held if one.resized and one.capacity is not None}
        if capacities:
            yield Page(replace(place, after=(max(capacities),)), capacities=capacities)
        place = replace(place, after=(page.after,)) if page.after is not None else None


async def copy_page(target: AsyncStore, copying: Copying, found: Page) -> Copying:
    """Have the target take a page in, then read it there and compare."""
    page = found.for_target(copying)
    command = Import(
        copying.source,
        copying.place,
        page.place.text,
        checksum_of(page.records, copying.checksum),
        page.settings,
        page.messages,
        page.fences,
        page.entries,
        page.lanes,
    )
    for key, capacity in page.capacities.items():
        await _set_capacity(target, key, capacity)
    after = await target.execute(command)
    there = await _read_back(target, page)
    if checksum_of(without_fences(page.lasting(there))) != checksum_of(without_fences(there)):
        raise StoreCorrupted(
            f"the copy of {page.place.name!r} differs in the target: is the target already in use? "
            "The source was not changed; empty the target, and copy again"
        )
    return after


async def _set_capacity(target: AsyncStore, key: str, capacity: int) -> None:
    """Set the capacity of a name, unless the target has its own."""
    there = (await target.execute(Leases(prefix=key, limit=1))).held
    if not there or there[0].key != key or there[0].capacity is None:
        await target.execute(Resize(key, capacity))


async def _read_back(target: AsyncStore, page: Page) -> list[Record]:
    if page.messages:
        ids = [message.id for message in page.messages]
        return [found async for some in messages_of(target, page.place.name, ids) for found in some]
    if page.entries:
        keys = [entry.key for entry in page.entries]
        return [found async for some in entries_of(target, page.place.name, keys) for found in some]
    return []


def _all_in(stats: Stats) -> int:
    """How many messages there are, with those that are kept when done."""
    return stats.total + stats.done


async def _compare_counts(target: AsyncStore, contents: Contents, *, merge: bool) -> None:
    """Refuse a target that has not as much in it; where it was merged it may have more, and entries may have come to their end."""
    for queue, count in contents.messages.items():
        found = _all_in(await target.execute(Count(queue)))
        if found < count or (found > count and not merge):
            raise StoreCorrupted(
                f"queue {queue!r} has {counted(count, 'message')} in the source and {found} in the target; "
                "the source was not changed: empty the target, and copy again"
            )
    for name, count in contents.entries.items():
        found = await target.execute(Length(name))
        if found > count and not merge:
            raise StoreCorrupted(
                f"dict {name!r} has {counted(count, 'entry', 'entries')} in the source and {found} in the target; "
                "the source was not changed: empty the target, and copy again"
            )
