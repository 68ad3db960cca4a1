"""A schedule as it is stored, and which of its runs are due."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

from msgspec import Raw, Struct, convert, json
from msgspec.structs import replace

from holdfast.codec import encode_key
from holdfast.commands import Item
from holdfast.schedules.rules import SECOND, Rule, rule_of

SCHEDULES = "holdfast-schedules"
"""The dict of all schedules, by name."""

SKIPPED = "holdfast-schedules-skipped"
"""The dict that counts the runs of each schedule that were left out because the one before was not over."""

Overlap = Literal["skip", "queue", "replace", "allow"]
CatchUp = Literal["none", "last", "all"]
OVERLAPS: dict[Overlap, dict[str, Any]] = {
    "skip": {"if_ready": "keep", "if_leased": "keep"},
    "queue": {"if_ready": "keep", "if_leased": "buffer"},
    "replace": {"if_ready": "update", "if_leased": "update"},
    "allow": {},
}
"""What each means to a put with the key of its runs."""
CATCH_UPS: tuple[CatchUp, ...] = ("none", "last", "all")

FRESH_US = 60 * SECOND
"""How late a run may be that is not caught up with."""
BACK_US = 300 * SECOND
"""How far the clock may have been set back before a schedule starts again; up to this it waits."""
AT_ONCE = 1_000
"""How many missed runs are put in one step."""
ORPHAN_US = 3_600 * SECOND
"""After how long a schedule that no worker declares any more runs no more."""
REMOVED_US = 7 * 86_400 * SECOND
"""After how long it is removed."""


class ScheduleEntry(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A schedule as it is stored. Moments are microseconds of the wall clock."""

    rule: str
    queue: str
    value: Raw
    put: dict[str, Any] = {}
    """Options of the put, as `Item` has them, in JSON."""
    tz: str = "UTC"
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    catch_up_within_s: float = 86_400.0
    jitter_s: float = 0.0
    starts_at: int | None = None
    ends_at: int | None = None
    source: str | None = None
    """Whose code declares it; None for one that was saved by a call or from the command line."""
    paused: str | None = None
    """Why it is paused; None if it is not."""
    last: int = 0
    """The run that was put, or passed over, last."""
    runs: int = 0
    missed: int = 0
    """How many runs were never put, because nothing was there to put them in time."""
    restarted_at: int | None = None
    """When it started again because the clock had been set back."""
    seen_at: int | None = None
    """When a worker that declares it was seen last."""

    @property
    def raw(self) -> Raw:
        """The entry as it is stored."""
        return Raw(json.encode(self))

    @property
    def definition(self) -> tuple[Any, ...]:
        """What its definition says, without what became of it."""
        return (*self.timing, self.queue, bytes(self.value), self.put, self.overlap, self.catch_up, self.catch_up_within_s, self.source)

    @property
    def timing(self) -> tuple[Any, ...]:
        """When it runs."""
        return self.rule, self.tz, self.jitter_s, self.starts_at, self.ends_at

    def parsed(self) -> Rule:
        """The rule itself."""
        return rule_of(self.rule, self.tz)

    def next_run(self, after: int) -> int | None:
        """The first run after a moment, None after the last."""
        found = self.parsed().after(max(after, (self.starts_at or 0) - 1))
        return None if found is None or (self.ends_at is not None and found > self.ends_at) else found

    def is_orphan(self, now: int) -> bool:
        """Whether no worker declares it any more that once did."""
        return self.source is not None and now - (self.seen_at or 0) > ORPHAN_US

    def item(self, name: str, run: int) -> Item:
        """What is put for a run; all processes agree on its id and on its delay."""
        told = {**self.put.get("metadata", {}), "schedule": name, "scheduled_for": shown(run)}
        fields = {**self.put, "id": f"{name}@{shown(run)}", "value": self.value, "metadata": Raw(json.encode(told))}
        if self.overlap != "allow":
            fields |= {"key": self.put.get("key", key_of(name)), **OVERLAPS[self.overlap]}
        if self.jitter_s:
            fields["delay_s"] = jitter_of(name, run, self.jitter_s)
        return convert(fields, Item)


class Due(Struct, frozen=True):
    """What is to be done about a schedule now: the runs to put, oldest first, and the entry as it is afterwards."""

    runs: list[int]
    entry: ScheduleEntry


def due(entry: ScheduleEntry, now: int) -> Due | None:
    """What is due, None if nothing is."""
    if entry.last > now + BACK_US:
        return Due([], replace(entry, last=now, restarted_at=now))
    first = entry.next_run(entry.last)
    if entry.paused is not None or first is None or first > now:
        return None
    rule, until = entry.parsed(), now if entry.ends_at is None else min(now, entry.ends_at)
    newest = rule.newest(until) or first
    if entry.catch_up == "all":
        runs = list(islice(_runs(rule, max(first, now - round(entry.catch_up_within_s * SECOND)), until), AT_ONCE))
    else:
        runs = [newest] if entry.catch_up == "last" or now - newest <= FRESH_US else []
    last = runs[-1] if runs else newest
    passed = _count(rule, first, last) - len(runs)
    return Due(runs, replace(entry, last=last, runs=entry.runs + len(runs), missed=entry.missed + passed))


def _runs(rule: Rule, first: int, until: int) -> Iterator[int]:
    run = rule.after(first - 1)
    while run is not None and run <= until:
        yield run
        run = rule.after(run)


def _count(rule: Rule, first: int, last: int) -> int:
    """How many runs there are from one to another, counted up to a thousand."""
    return sum(1 for _ in islice(_runs(rule, first, last), AT_ONCE))


def key_of(name: str) -> str:
    """The key of the runs of a schedule that has no other, by which runs that overlap are found."""
    return encode_key(("schedule", name))


def jitter_of(name: str, run: int, jitter_s: float) -> float:
    """How much later a run is put, the same in every process."""
    digest = hashlib.blake2b(f"{name}@{run}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64 * jitter_s


def shown(moment: int) -> str:
    """A moment as it stands in ids and metadata: in UTC, with fractions of a second only where it has them."""
    return datetime.fromtimestamp(moment / SECOND, UTC).isoformat().replace("+00:00", "Z")


class Run(Struct, frozen=True):
    """Which run of which schedule a message is, as its metadata says."""

    schedule: str
    scheduled_for: str


def run_in(metadata: Raw | None) -> Run | None:
    """The run that metadata names; other metadata is the user's own."""
    try:
        return None if metadata is None else json.decode(metadata, type=Run)
    except (ValueError, RecursionError):
        return None


def run_of(message_id: str) -> tuple[str, int] | None:
    """The schedule and the moment of a run with this id, None for any other id."""
    name, _, moment = message_id.rpartition("@")
    try:
        when = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (name, round(when.timestamp() * SECOND)) if name and when.tzinfo is not None else None


def entry_of(raw: Raw) -> ScheduleEntry:
    """An entry as it was stored."""
    return json.decode(raw, type=ScheduleEntry)
