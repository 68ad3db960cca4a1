"""The arguments of a schedule as an entry, and an entry as people read it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol, TypedDict

from msgspec import Struct, json

from holdfast.arguments.options import refuse_unknown
from holdfast.arguments.put_options import MessageOptions, make_item
from holdfast.codec import JSON, check_name
from holdfast.commands import Item
from holdfast.commands.argument_checks import check_choice
from holdfast.schedules.entries import CATCH_UPS, OVERLAPS, CatchUp, Overlap, ScheduleEntry
from holdfast.schedules.rules import Every, rule_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunOptions(TypedDict, total=False):
    """When a schedule runs."""

    tz: str
    """The time zone of the rule, by default UTC."""
    overlap: Overlap
    """If the run before is not over: `skip` this one (the default), `queue` one behind it, `replace` its value, or `allow` both."""
    catch_up: CatchUp
    """What to do about runs that were missed: put the `last` (the default), `all` of them, or `none` that is more than a minute late."""
    catch_up_within_s: float
    """How old a missed run may be with `catch_up="all"`; by default a day."""
    jitter_s: float
    """Each run is put up to so much later, by an amount that is fixed by its name and moment; by default 0."""
    starts_at: datetime | None
    """The moment, with time zone, before which it does not run."""
    ends_at: datetime | None
    """The moment, with time zone, after which it does not run."""


class ScheduleOptions(RunOptions, MessageOptions, total=False):
    """The options of a schedule: when it runs, and what its runs are put with."""

    max_attempts: int | None
    """After how many failures and expiries a run is dead; None, the default, is no limit of its own."""
    key: Hashable | None
    """The key of its runs, by default that of the task, else one of its own: `overlap` says what happens if a message of the key is there.
    With `overlap="allow"` runs have no key of their own, and one that is given means what it means to `Queue.put`."""


OPTIONS: Final = frozenset(ScheduleOptions.__annotations__)
PUT_OPTIONS: Final = OPTIONS - RunOptions.__annotations__.keys()
"""Those with which its runs are put."""
DECIDED: Final = frozenset({"id", "value", "if_ready", "if_leased"})
"""What is not kept among the options of the put: it stands elsewhere, or `overlap` decides it."""


class ScheduleStatus(Struct, frozen=True):
    """A schedule as it stands."""

    name: str
    rule: str
    tz: str
    queue: str
    overlap: Overlap
    catch_up: CatchUp
    paused: str | None
    """Why it is paused; None if it is not."""
    last_run: datetime | None
    next_run: datetime | None
    """None if it is paused, orphaned or over."""
    runs: int
    skipped: int
    """Runs that were left out because the one before was not over."""
    missed: int
    """Runs that nothing was there to put in time."""
    restarted_at: datetime | None
    """When it started again because the clock had been set back."""
    source: str | None
    """Whose code declares it; None if it was saved by a call or from the command line."""
    is_orphan: bool
    """Whether no worker declares it any more; it does not run then, and is removed after a week."""
    served_by: tuple[str, ...]
    """The living workers of its queue."""


class Synced(Struct, frozen=True):
    """What `Tasks.sync_schedules` did, by the names of schedules."""

    saved: list[str]
    removed: list[str]
    """Those that the code declared before and does not any more."""
    left: list[str]
    """Such ones that were not removed; workers put no runs of them an hour after the last one that declared them."""


class Scheduled(Protocol):
    """A call of a task, as `Task.args` gives it."""

    @property
    def queue(self) -> str:
        """The queue of the task."""
        ...

    def message(self, options: Mapping[str, Any]) -> Item:
        """The message that is put for it."""
        ...


def entry_for(rule: str | Every, queue: str, value: Any, options: ScheduleOptions) -> ScheduleEntry:
    """The entry of a schedule that puts a value; raises what is wrong with it."""
    return _entry(rule, queue, partial(make_item, value, JSON), options)


def entry_of_call(rule: str | Every, call: Scheduled, options: Mapping[str, Any]) -> ScheduleEntry:
    """The entry of a schedule that puts a job of a task; raises what is wrong with it."""
    return _entry(rule, call.queue, call.message, options)


def _entry(rule: str | Every, queue: str, item_with: Callable[[dict[str, Any]], Item], options: Mapping[str, Any]) -> ScheduleEntry:
    refuse_unknown("a schedule", options, OPTIONS)
    given: dict[str, Any] = dict(options)
    # Refuses what a put would refuse, today and not at the first run.
    item = item_with({name: given.pop(name) for name in PUT_OPTIONS if name in given})
    put: dict[str, Any] = json.decode(json.encode(item))
    for name in ("starts_at", "ends_at"):
        given[name] = moment_of(given.get(name), name)
    for name in ("jitter_s", "catch_up_within_s"):
        _check_seconds(given.get(name, 0.0), name)
    check_choice(given.get("overlap", "skip"), tuple(OVERLAPS), "overlap")
    check_choice(given.get("catch_up", "last"), CATCH_UPS, "catch_up")
    entry = ScheduleEntry(
        rule=str(rule),
        queue=check_name(queue, "queue"),
        value=item.value,
        put={name: each for name, each in put.items() if name not in DECIDED},
        **given,
    )
    rule_of(rule, entry.tz)
    return entry


def status_of(name: str, entry: ScheduleEntry, now: int, skipped: int, served_by: Sequence[str]) -> ScheduleStatus:
    """An entry as people read it."""
    is_over = entry.paused is not None or entry.is_orphan(now)
    return ScheduleStatus(
        name=name,
        rule=entry.rule,
        tz=entry.tz,
        queue=entry.queue,
        overlap=entry.overlap,
        catch_up=entry.catch_up,
        paused=entry.paused,
        last_run=wall(entry.last) if entry.runs else None,
        next_run=None if is_over else wall(entry.next_run(max(now, entry.last))),
        runs=entry.runs,
        skipped=skipped,
        missed=entry.missed,
        restarted_at=wall(entry.restarted_at),
        source=entry.source,
        is_orphan=entry.is_orphan(now),
        served_by=tuple(served_by),
    )


def wall(moment: int | None) -> datetime | None:
    """A moment as people know it."""
    return None if moment is None else EPOCH + timedelta(microseconds=moment)


def moment_of(when: object, what: str) -> int | None:
    """A moment in microseconds; raises unless it has a time zone."""
    if when is None:
        return None
    if not isinstance(when, datetime):
        raise TypeError(f"{what} is a datetime with a time zone, not {type(when).__name__}")
    if when.tzinfo is None:
        raise ValueError(f"{what} needs a time zone: datetime(..., tzinfo=UTC), or when.astimezone() for local time")
    return (when - EPOCH) // timedelta(microseconds=1)


def _check_seconds(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 366 * 86_400:
        raise ValueError(f"{what} is a number of seconds from 0 to a year, not {value!r}")


def runs_from(entry: ScheduleEntry, now: int, count: int) -> list[datetime]:
    """The next runs, as people read them."""
    found: list[datetime] = []
    moment: int | None = max(now, entry.last)
    while len(found) < count and moment is not None:
        moment = entry.next_run(moment)
        found += [] if moment is None else [EPOCH + timedelta(microseconds=moment)]
    return found
