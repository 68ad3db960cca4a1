"""Watches: yields the current state if wanted, then every event once and in order."""

import math
import time
from collections.abc import AsyncGenerator
from typing import Any

from holdfast.codec.call_fields import LAST_INDEX, POLL_INTERVAL_S, SNAPSHOT, TIMEOUT_S
from holdfast.commands import Changes
from holdfast.commands.events import OLDEST
from holdfast.commands.topics import watch_topic
from holdfast.errors import Compacted, StoreUnavailable
from holdfast.records import Event
from holdfast.results import WatchEvent
from holdfast.stores import AsyncStore
from holdfast.views.watch_subjects import PAGE, Subject, facts_of, told, told_now

POLL_S = 1.0
"""How much a missed wake-up can cost."""

ROUNDS = 1_000
"""So often a snapshot reads again what changed while it was read."""


def watch(
    store: AsyncStore,
    subject: Subject,
    *,
    last_index: int = OLDEST,
    timeout_s: float | None = None,
    poll_s: float = POLL_S,
    snapshot: bool = False,
) -> AsyncGenerator[WatchEvent, None]:
    """Yield what happened to the subject after `last_index`, and go on with what happens, until nothing came for `timeout_s`.

    With `snapshot`, `last_index` is ignored: an event `snapshot` for each item comes first, then `synced`, whose index is the moment of
    the snapshot, then what came after it. Raises `Compacted` when events after `last_index` are gone.
    """
    last_index, snapshot = LAST_INDEX.check(last_index), SNAPSHOT.check(snapshot)
    timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    return _watch(store, subject, last_index, timeout_s, poll_s, snapshot=snapshot)


async def _watch(
    store: AsyncStore, subject: Subject, last_index: int, timeout_s: float | None, poll_s: float, *, snapshot: bool
) -> AsyncGenerator[WatchEvent, None]:
    if snapshot:
        items, last_index = await _read_all(store, subject)
        for item in items.values():
            yield told_now(last_index, "snapshot", subject.tell_item(item))
        yield told_now(last_index, "synced", {})
    deadline = _deadline(timeout_s)
    with store.mark(watch_topic(subject.topic)) as mark:
        while True:
            page = await store.execute(Changes(subject.topic, last_index, PAGE))
            last_index = page.upto
            if page.events:
                mark.used()
            for event in page.events:
                facts = facts_of(event)
                if subject.concerns(facts):
                    yield told(subject, event, facts, store.wall_offset_us())
                    deadline = _deadline(timeout_s)
            if page.upto < page.latest:
                continue
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return
            await store.wait(mark, remaining_s, None, poll_s)


def _deadline(timeout_s: float | None) -> float:
    return math.inf if timeout_s is None else time.monotonic() + timeout_s


async def _read_all(store: AsyncStore, subject: Subject) -> tuple[dict[str, Any], int]:
    """Everything there is, as it was when the newest event had the number given."""
    for _ in range(ROUNDS):
        try:
            return await _read_once(store, subject)
        except _Overtaken:
            continue
    raise StoreUnavailable(f"{subject.topic} changes faster than a snapshot of it can be read: watch without one, or try again")


async def _read_once(store: AsyncStore, subject: Subject) -> tuple[dict[str, Any], int]:
    """Read page by page; what changed meanwhile, read again, until nothing has."""
    items, first, index = await _read_pages(store, subject)
    read_at: dict[str, int] = {}
    since, stale = first, set[str]()
    for _ in range(ROUNDS):
        events = await _between(store, subject, since, index)
        touched = subject.touched(((event.index, facts_of(event)) for event in events), items)
        stale |= {name for name, at in touched.items() if at > read_at.get(name, first)}
        if not stale:
            return items, index
        since = index
        names = sorted(stale)[:PAGE]
        page = await store.execute(subject.again(names))
        found, index = subject.items(page), page.index
        if page.more:
            names = names[: names.index(subject.last(page)) + 1]
        stale.difference_update(names)
        read_at |= dict.fromkeys(names, index)
        for name in names:
            items.pop(name, None)
        items |= found
    raise _Overtaken


async def _read_pages(store: AsyncStore, subject: Subject) -> tuple[dict[str, Any], int, int]:
    """The items of all pages, and the numbers of the newest events when the first and the last page were read."""
    items: dict[str, Any] = {}
    indexes: list[int] = []
    asked: list[Any] = [*subject.first_pages()]
    while asked:
        command = asked.pop(0)
        page = await store.execute(command)
        items.update(subject.items(page))
        indexes.append(page.index)
        following = subject.next_page(command, page)
        if following is not None:
            asked.insert(0, following)
    return items, indexes[0], indexes[-1]


async def _between(store: AsyncStore, subject: Subject, since: int, upto: int) -> list[Event]:
    """The events behind one number up to another, which both were the newest of their moment."""
    events: list[Event] = []
    while since < upto:
        try:
            page = await store.execute(Changes(subject.topic, since, PAGE))
        except Compacted as error:
            raise _Overtaken from error
        events += [event for event in page.events if event.index <= upto]
        since = page.upto
    if any(event.event == "cleared" for event in events):
        raise _Overtaken  # Everything changed at once: begin again.
    return events


class _Overtaken(Exception):  # noqa: N818 - the flow's own signal, never seen outside
    """What was read so far is of no use."""
