"""Looks at schedules, pauses them, and puts a run of one now."""

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import replace

from holdfast._async.flows.putting import put
from holdfast._async.flows.schedule_book import Stored, schedule_of, schedule_page
from holdfast._async.flows.ticking import now_of
from holdfast._async.flows.working.registering import workers
from holdfast.codec import encode_key
from holdfast.commands import Put, Read
from holdfast.errors import Refused, ScheduleMissing
from holdfast.schedules.definition import ScheduleStatus, status_of
from holdfast.schedules.entries import SKIPPED
from holdfast.stores import AsyncStore
from holdfast.workers.registry import WorkerInfo


async def schedule_status(store: AsyncStore, name: str) -> ScheduleStatus:
    """How one schedule stands."""
    return (await _statuses(store, [await found(store, name)], await workers(store)))[0]


async def schedule_statuses(store: AsyncStore, prefix: str = "") -> list[ScheduleStatus]:
    """How every schedule stands whose name begins so, in order of their names."""
    living = await workers(store)
    page, more = await schedule_page(store, prefix)
    statuses = await _statuses(store, page, living)
    while more:
        page, more = await schedule_page(store, prefix, page[-1].name)
        statuses += await _statuses(store, page, living)
    return statuses


async def page_of_statuses(store: AsyncStore, prefix: str, after: str | None, limit: int) -> list[ScheduleStatus]:
    """How some schedules stand whose names begin so, in order of their names, behind one of them."""
    page, more = await schedule_page(store, prefix, after, limit)
    while more and len(page) < limit:  # One answer could not bring them all.
        behind, more = await schedule_page(store, prefix, page[-1].name, limit - len(page))
        page += behind
    return await _statuses(store, page, await workers(store))


async def set_paused(store: AsyncStore, name: str, reason: str | None) -> None:
    """Pause a schedule for a reason, or let it go on with the next run after now."""
    stored = await found(store, name)
    entry = stored.entry
    last = entry.last if reason is not None else max(entry.last, await now_of(store))
    (written,) = await store.execute(stored.write(replace(entry, paused=reason, last=last)))
    if not written.written:
        raise Refused(f"schedule {name!r} was changed by another caller at the same time; nothing was written: try again")


async def put_now(store: AsyncStore, name: str) -> tuple[str, str]:
    """Put a run now, besides those of the rule; return its queue and id."""
    entry = (await found(store, name)).entry
    puts = await put(store, Put(entry.queue, [entry.item(name, await now_of(store))]))
    return entry.queue, puts.ids[0]


async def found(store: AsyncStore, name: str) -> Stored:
    """The stored schedule; raises `ScheduleMissing` if there is none."""
    stored = await schedule_of(store, name)
    if stored is None:
        raise ScheduleMissing(f"there is no schedule {name!r}: `holdfast schedule list` shows those there are")
    return stored


async def _statuses(store: AsyncStore, page: Sequence[Stored], living: Sequence[WorkerInfo]) -> list[ScheduleStatus]:
    if not page:
        return []
    now = await now_of(store)
    read = await store.execute(Read(SKIPPED, [encode_key(stored.name) for stored in page]))
    skipped = {entry.key: json.decode(entry.value, type=int) for entry in read.entries}
    return [
        status_of(
            stored.name,
            stored.entry,
            now,
            skipped.get(encode_key(stored.name), 0),
            [worker.name for worker in living if worker.serves(stored.entry.queue)],
        )
        for stored in page
    ]
