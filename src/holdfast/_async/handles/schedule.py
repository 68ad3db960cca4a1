"""A schedule: puts a message by a rule, again and again."""

import builtins
from datetime import datetime
from typing import Any, ClassVar, Self, Unpack

from msgspec import json
from msgspec.structs import replace

from holdfast._async.flows.putting import put
from holdfast._async.flows.ticking import Stored, now_of, remove, save, schedule_of, schedules_of
from holdfast._async.flows.working.registering import workers
from holdfast._async.handles.job import AsyncJob
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.where import StoreHandle, Where, reach
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, check_name, encode_key
from holdfast.commands import Put, Read
from holdfast.errors import Refused, ScheduleMissing
from holdfast.schedules.definition import ScheduleOptions, ScheduleStatus, entry_for, runs_from, status_of
from holdfast.schedules.entries import SKIPPED, ScheduleEntry
from holdfast.schedules.rules import Every
from holdfast.stores import AsyncStore


@show_options
class AsyncSchedule(StoreHandle):
    """A schedule by name: `Schedule("report", "0 3 * * *", ("reports", {"kind": "daily"})).save()`.

    The rule is a cron expression, in the time zone `tz`, or `Every(...)`; the call names the queue and the value that is put for each run.
    It is kept in the store. Workers put what is due, as does `holdfast schedule run`; there is no leader and no process of its own, and
    each run is put once, however many of them there are. The options are those of `ScheduleOptions`.
    """

    aio: ClassVar[Twin] = Twin()

    name: str

    def __init__(
        self,
        name: str,
        rule: str | Every,
        call: tuple[str, Any],
        *,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        super().__init__(JSON, client, base_url)
        self.name = check_name(name, "schedule")
        queue, value = call
        self._entry: ScheduleEntry | None = entry_for(rule, queue, value, options)

    @classmethod
    def from_name(cls, name: str, **where: Unpack[Where]) -> Self:
        """Make a handle of one that was saved, and touch nothing."""
        handle = cls.__new__(cls)
        StoreHandle.__init__(handle, JSON, **where)
        vars(handle).update(name=check_name(name, "schedule"), _entry=None)
        return handle

    @classmethod
    def of_entry(cls, name: str, entry: ScheduleEntry, **where: Unpack[Where]) -> Self:
        """Make a handle of one that is defined, and perhaps not saved."""
        handle = cls.from_name(name, **where)
        handle._entry = entry  # noqa: SLF001 - of this class
        return handle

    async def save(self) -> None:
        """Store it, or change the stored one: its counts stay, and that it is paused. With another rule it begins after now.

        Raises `Refused` if another caller changed it at the same time.
        """
        if self._entry is None:
            raise ValueError(f"this handle of schedule {self.name!r} was made from its name and has no rule: make one with a rule to save")
        store = self._reach().async_store
        now = await now_of(store)
        await save(store, self.name, replace(self._entry, seen_at=None if self._entry.source is None else now), now)

    async def delete(self) -> bool:
        """Remove it; False if there is none."""
        store = self._reach().async_store
        stored = await schedule_of(store, self.name)
        while stored is not None and not await remove(store, stored):
            stored = await schedule_of(store, self.name)
        return stored is not None

    async def pause(self, reason: str = "") -> None:
        """Put no run until `resume`; runs that pass meanwhile are missed, and not caught up with."""
        await self._change(reason)

    async def resume(self) -> None:
        """Go on with the next run after now."""
        await self._change(None)

    async def _change(self, reason: str | None) -> None:
        store = self._reach().async_store
        stored = await self._found(store)
        entry = stored.entry
        last = entry.last if reason is not None else max(entry.last, await now_of(store))
        (written,) = await store.execute(stored.write(replace(entry, paused=reason, last=last)))
        if not written.written:
            raise Refused(f"schedule {self.name!r} was changed by another caller at the same time; nothing was written: try again")

    async def run_now(self) -> AsyncJob[Any]:
        """Put a run now, besides those of the rule; `overlap` holds for it, too."""
        client = self._reach()
        entry = (await self._found(client.async_store)).entry
        item = entry.item(self.name, await now_of(client.async_store))
        puts = await put(client.async_store, Put(entry.queue, [item]))
        return AsyncJob(entry.queue, puts.ids[0], client=client)

    async def next_runs(self, count: int = 5) -> builtins.list[datetime]:
        """When it runs next, without jitter; fewer if it ends before."""
        store = self._reach().async_store
        stored = await schedule_of(store, self.name)
        entry = self._entry if stored is None else stored.entry
        if entry is None:
            raise ScheduleMissing(f"there is no schedule {self.name!r}")
        return runs_from(entry, await now_of(store), count)

    async def status(self) -> ScheduleStatus:
        """How it stands; raises `ScheduleMissing` if there is none."""
        store = self._reach().async_store
        return await _status(store, await self._found(store))

    @classmethod
    async def list(cls, prefix: str = "", **where: Unpack[Where]) -> builtins.list[ScheduleStatus]:
        """Every schedule whose name begins so, in order of their names."""
        store = reach(**where).async_store
        return [await _status(store, stored) async for stored in schedules_of(store, prefix)]

    async def _found(self, store: AsyncStore) -> Stored:
        stored = await schedule_of(store, self.name)
        if stored is None:
            raise ScheduleMissing(f"there is no schedule {self.name!r}: `holdfast schedule list` shows those there are")
        return stored

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


async def _status(store: AsyncStore, stored: Stored) -> ScheduleStatus:
    skipped = (await store.execute(Read(SKIPPED, [encode_key(stored.name)]))).entries
    served_by = [worker.name for worker in await workers(store) if worker.serves(stored.entry.queue)]
    count = json.decode(skipped[0].value, type=int) if skipped else 0
    return status_of(stored.name, stored.entry, await now_of(store), count, served_by)
