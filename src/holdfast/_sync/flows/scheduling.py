# Generated from src/holdfast/_async/flows/scheduling.py by tools/unasync.py; do not edit.
"""Looks at schedules, pauses them, and puts a run of one now."""

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import replace

from holdfast._sync.flows.putting import put
from holdfast._sync.flows.schedule_book import Stored, schedule_of, schedule_page
from holdfast._sync.flows.ticking import now_of
from holdfast._sync.flows.working.registering import workers
from holdfast.codec import encode_key
from holdfast.commands import Put, Read
from holdfast.errors import Refused, ScheduleMissing
from holdfast.schedules.definition import ScheduleStatus, status_of
from holdfast.schedules.entries import SKIPPED
from holdfast.stores import Store
from holdfast.workers.registry import WorkerInfo


def schedule_status(store: Store, name: str) -> ScheduleStatus:
    """How one schedule stands."""
    return (_statuses(store, [found(store, name)], workers(store)))[0]


def schedule_statuses(store: Store, prefix: str = "") -> list[ScheduleStatus]:
    """How every schedule stands whose name begins so, in order of their names."""
    living = workers(store)
    page, more = schedule_page(store, prefix)
    statuses = _statuses(store, page, living)
    while more:
        page, more = schedule_page(store, prefix, page[-1].name)
        statuses += _statuses(store, page, living)
    return statuses


def page_of_statuses(store: Store, prefix: str, after: str | None, limit: int) -> list[ScheduleStatus]:
    """How some schedules stand whose names begin so, in order of their names, behind one of them."""
    page, more = schedule_page(store, prefix, after, limit)
    while more and len(page) < limit:  # One answer could not bring them all.
        behind, more = schedule_page(store, prefix, page[-1].name, limit - len(page))
        page += behind
    return _statuses(store, page, workers(store))


def set_paused(store: Store, name: str, reason: str | None) -> None:
    """Pause a schedule for a reason, or let it go on with the next run after now."""
    stored = found(store, name)
    entry = stored.entry
    last = entry.last if reason is not None else max(entry.last, now_of(store))
    (written,) = store.execute(stored.write(replace(entry, paused=reason, last=last)))
    if not written.written:
        raise Refused(f"schedule {name!r} was changed by another caller at the same time; nothing was written: try again")


def put_now(store: Store, name: str) -> tuple[str, str]:
    """Put a run now, besides those of the rule; return its queue and id."""
    entry = (found(store, name)).entry
    puts = put(store, Put(entry.queue, [entry.item(name, now_of(store))]))
    return entry.queue, puts.ids[0]


def found(store: Store, name: str) -> Stored:
    """The stored schedule; raises `ScheduleMissing` if there is none."""
    stored = schedule_of(store, name)
    if stored is None:
        raise ScheduleMissing(f"there is no schedule {name!r}: `holdfast schedule list` shows those there are")
    return stored


def _statuses(store: Store, page: Sequence[Stored], living: Sequence[WorkerInfo]) -> list[ScheduleStatus]:
    if not page:
        return []
    now = now_of(store)
    read = store.execute(Read(SKIPPED, [encode_key(stored.name) for stored in page]))
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
