"""Schedules that code declares for its tasks."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, Unpack

from msgspec.structs import replace

from holdfast.arguments.options import refuse_unknown, show_options
from holdfast.codec import check_name
from holdfast.commands import Item
from holdfast.schedules.definition import RunOptions, entry_of_item
from holdfast.schedules.entries import ScheduleEntry
from holdfast.schedules.rules import Every


class TaskScheduleOptions(RunOptions, total=False):
    """The options of a schedule of a task: when it runs, and its name."""

    name: str
    """The name of the schedule, by default that of the task."""


@show_options
class TaskSchedule:
    """A schedule of a task: what `Tasks.schedule` gives."""

    def __init__(self, name: str, rule: str | Every, queue: str, item: Item, source: str) -> None:
        self.name: str = name
        self.task: str = name
        """The name of the task."""
        self._rule = rule
        self._queue = queue
        self._item = item
        self._source = source
        self._options: Mapping[str, Any] = {}
        self.entry  # noqa: B018 - raises what is wrong with the rule

    def options(self, **options: Unpack[TaskScheduleOptions]) -> Self:
        """Set options of the schedule; those that were set before and are not named here stay."""
        given: dict[str, Any] = dict(options)
        refuse_unknown("a schedule of a task", given, TaskScheduleOptions.__annotations__.keys())
        self.name = check_name(given.pop("name", self.name), "schedule")
        self._options = {**self._options, **given}
        self.entry  # noqa: B018 - raises what is wrong with them
        return self

    @property
    def rule(self) -> str:
        """The rule, as it is stored."""
        return str(self._rule)

    @property
    def entry(self) -> ScheduleEntry:
        """The entry that is stored for it."""
        return replace(entry_of_item(self._rule, self._queue, self._item, self._options), source=self._source)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {self._rule}>"


def declared_entries(schedules: Iterable[TaskSchedule]) -> dict[str, ScheduleEntry]:
    """The entries by name; ValueError if two have the same."""
    found: dict[str, ScheduleEntry] = {}
    for schedule in schedules:
        if schedule.name in found:
            raise ValueError(f'two schedules are named {schedule.name!r}: give one another name, app.schedule(…).options(name="…")')
        found[schedule.name] = schedule.entry
    return found
