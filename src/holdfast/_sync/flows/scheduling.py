# Generated from src/holdfast/_async/flows/scheduling.py by tools/unasync.py; do not edit.
"""Looks at schedules, pauses them, and puts a run of one now."""

from msgspec import json
from msgspec.structs import replace

from holdfast._sync.flows.putting import put
from holdfast._sync.flows.schedule_book import Stored, schedule_of, schedules_of
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
    return _status(store, found(store, name), workers(store))


def schedule_statuses(store: Store, prefix: str = "") -> list[ScheduleStatus]:
    """How every schedule stands whose name begins so, in order of their names."""
    living = workers(store)
    return [_status(store, stored, living) for stored in schedules_of(store, prefix)]


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


def _status(store: Store, stored: Stored, living: list[WorkerInfo]) -> ScheduleStatus:
    skipped = (store.execute(Read(SKIPPED, [encode_key(stored.name)]))).entries
    served_by = [worker.name for worker in living if worker.serves(stored.entry.queue)]
    count = json.decode(skipped[0].value, type=int) if skipped else 0
    return status_of(stored.name, stored.entry, now_of(store), count, served_by)
