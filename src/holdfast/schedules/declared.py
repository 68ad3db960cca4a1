"""Schedules that code declares for its tasks."""

from collections.abc import Iterable
from typing import Protocol

from holdfast.schedules.definition import ScheduleOptions
from holdfast.schedules.entries import ScheduleEntry


class TaskScheduleOptions(ScheduleOptions, total=False):
    """The options of a schedule of a task: those of a schedule, and its name."""

    name: str
    """The name of the schedule, by default that of the task."""


class Declared(Protocol):
    """A schedule that code declares."""

    @property
    def name(self) -> str:
        """Its name in the store."""
        ...

    @property
    def entry(self) -> ScheduleEntry:
        """What is stored for it."""
        ...


def declared_entries(schedules: Iterable[Declared]) -> dict[str, ScheduleEntry]:
    """The entries by name; ValueError if two have the same."""
    found: dict[str, ScheduleEntry] = {}
    for schedule in schedules:
        if schedule.name in found:
            raise ValueError(f'two schedules are named {schedule.name!r}: give one another name, app.schedule(…).options(name="…")')
        found[schedule.name] = schedule.entry
    return found
