# Generated from src/holdfast/_async/handles/schedule.py by tools/unasync.py; do not edit.
"""Schedules, which put a message by a rule, again and again: by name, and as code declares them for a task."""

import builtins
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self, Unpack

from msgspec.structs import replace

from holdfast._sync.flows.schedule_book import schedule_of
from holdfast._sync.flows.scheduling import put_now, schedule_status, schedule_statuses, set_paused
from holdfast._sync.flows.ticking import now_of, remove, save
from holdfast._sync.handles.job import Job
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import refuse_unknown, show_options
from holdfast.arguments.where import StoreHandle, Where, reach
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, check_name
from holdfast.codec.limits import shown
from holdfast.errors import ScheduleMissing
from holdfast.schedules.declared import TaskScheduleOptions
from holdfast.schedules.definition import ScheduleOptions, ScheduleStatus, entry_for, entry_of_call, runs_from
from holdfast.schedules.entries import ScheduleEntry
from holdfast.schedules.rules import Every
from holdfast.workers.calls import Call

QUEUE_AND_VALUE = 2


class NamedSchedule(StoreHandle):
    """A schedule by its name: what can be done with it, and what is known of it."""

    name: str
    _entry: ScheduleEntry | None

    def save(self) -> None:
        """Store it, or change the stored one: its counts stay, and that it is paused. With another rule it begins after now.

        Raises `Refused` if another caller changed it at the same time.
        """
        if self._entry is None:
            raise ValueError(f"this handle of schedule {self.name!r} was made from its name and has no rule: make one with a rule to save")
        store = self._reach().store
        now = now_of(store)
        save(store, self.name, replace(self._entry, seen_at=None if self._entry.source is None else now), now)

    def delete(self) -> bool:
        """Remove it; False if there is none."""
        store = self._reach().store
        stored = schedule_of(store, self.name)
        while stored is not None and not remove(store, stored):
            stored = schedule_of(store, self.name)
        return stored is not None

    def pause(self, reason: str = "") -> None:
        """Put no run until `resume`; runs that pass meanwhile are missed, and not caught up with."""
        set_paused(self._reach().store, self.name, reason)

    def resume(self) -> None:
        """Go on with the next run after now."""
        set_paused(self._reach().store, self.name, None)

    def run_now(self) -> Job[Any]:
        """Put a run now, besides those of the rule; `overlap` holds for it, too."""
        client = self._reach()
        queue, run = put_now(client.store, self.name)
        return Job(queue, run, client=client)

    def next_runs(self, count: int = 5) -> builtins.list[datetime]:
        """When it runs next, without jitter; fewer if it ends before."""
        store = self._reach().store
        stored = schedule_of(store, self.name)
        entry = self._entry if stored is None else stored.entry
        if entry is None:
            raise ScheduleMissing(f"there is no schedule {self.name!r}")
        return runs_from(entry, now_of(store), count)

    def status(self) -> ScheduleStatus:
        """How it stands; raises `ScheduleMissing` if there is none."""
        return schedule_status(self._reach().store, self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


@show_options
class Schedule(NamedSchedule):
    """A schedule by name: `Schedule("report", "0 3 * * *", ("reports", {"kind": "daily"})).save()`.

    The rule is a cron expression, in the time zone `tz`, or `Every(...)`; the call names the queue and the value that is put for each run,
    or is one of a task: `report.args(kind="daily")`.
    It is kept in the store. Workers put what is due, as does `holdfast schedule run`; there is no leader and no process of its own, and
    each run is put once, however many of them there are. The options are those of `ScheduleOptions`.
    """

    aio: ClassVar[Twin] = Twin()

    def __init__(
        self,
        name: str,
        rule: str | Every,
        call: Call[Any] | tuple[str, Any],
        *,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        super().__init__(JSON, client, base_url)
        self.name: str = check_name(name, "schedule")
        if not isinstance(call, Call) and not (isinstance(call, tuple) and len(call) == QUEUE_AND_VALUE):
            raise TypeError(f"a schedule puts (queue, value), or a call of a task as task.args(…) gives it, not {shown(call)}")
        self._entry = entry_of_call(rule, call, options) if isinstance(call, Call) else entry_for(rule, *call, options)

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

    @classmethod
    def list(cls, prefix: str = "", **where: Unpack[Where]) -> builtins.list[ScheduleStatus]:
        """Every schedule whose name begins so, in order of their names."""
        return schedule_statuses(reach(**where).store, prefix)


@show_options
class TaskSchedule(NamedSchedule):
    """A schedule of a task, as `Tasks.schedule` declares it. Workers of the tasks save it when they start; `save` does it at once."""

    aio: ClassVar[Twin] = Twin()

    task: str
    """The name of the task."""
    entry: ScheduleEntry
    """What is stored for it."""

    def __init__(
        self,
        rule: str | Every,
        call: Call[Any],
        *,
        source: str,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> None:
        super().__init__(JSON, client, base_url)
        self.name: str = call.task
        self.task = call.task
        self._rule = rule
        self._call = call
        self._source = source
        self._options: Mapping[str, Any] = {}
        self.options()

    def options(self, **options: Unpack[TaskScheduleOptions]) -> Self:
        """Set options of the schedule; those that were set before and are not named here stay."""
        refuse_unknown("a schedule of a task", options, TaskScheduleOptions.__annotations__.keys())
        given: dict[str, Any] = {**self._options, **options}
        self.name = check_name(given.pop("name", self.name), "schedule")
        self._options = given
        self.entry = self._entry = replace(entry_of_call(self._rule, self._call, given), source=self._source)
        return self

    @property
    def rule(self) -> str:
        """The rule, as it is stored."""
        return self.entry.rule
