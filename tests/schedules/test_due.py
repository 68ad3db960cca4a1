"""What is due of a schedule: missed runs, ends, pauses, and clocks that were set."""

from datetime import datetime

import pytest
from msgspec import Raw
from msgspec.structs import replace

from holdfast.schedules.entries import AT_ONCE, BACK_US, CatchUp, ScheduleEntry, due, jitter_of
from holdfast.schedules.rules import SECOND

MINUTE = 60 * SECOND
START = round(datetime.fromisoformat("2026-05-01T12:00+00:00").timestamp()) * SECOND
EVERY_MINUTE = ScheduleEntry(rule="* * * * *", queue="q", value=Raw(b"1"), last=START)


def minutes(entry: ScheduleEntry, after_s: float) -> tuple[list[float], float, int]:
    """The runs that are due after so many seconds, where it stands then, and how many it passed over, in minutes after the start."""
    found = due(entry, START + round(after_s * SECOND))
    assert found is not None
    return [(run - START) / MINUTE for run in found.runs], (found.entry.last - START) / MINUTE, found.entry.missed


def test_nothing_is_due_before_its_moment_and_one_run_at_it() -> None:
    assert due(EVERY_MINUTE, START + MINUTE - 1) is None
    assert minutes(EVERY_MINUTE, 60) == ([1], 1, 0)


@pytest.mark.parametrize(
    ("catch_up", "after_s", "expected"),
    [
        ("last", 330, ([5], 5, 4)),
        ("none", 330, ([5], 5, 4)),
        ("all", 330, ([1, 2, 3, 4, 5], 5, 0)),
    ],
)
def test_missed_runs_are_caught_up_with_as_it_says(catch_up: CatchUp, after_s: float, expected: object) -> None:
    assert minutes(replace(EVERY_MINUTE, catch_up=catch_up), after_s) == expected


def test_what_is_late_by_more_than_a_minute_is_passed_over_where_nothing_is_caught_up_with() -> None:
    hourly = replace(EVERY_MINUTE, rule="0 * * * *", catch_up="none")
    assert minutes(hourly, 3_660) == ([60], 60, 0)
    assert minutes(hourly, 3_661) == ([], 60, 1)
    assert minutes(replace(hourly, catch_up="last"), 86_000) == ([1_380], 1_380, 22)


def test_only_so_old_runs_are_caught_up_with_and_only_so_many_at_once() -> None:
    everything = replace(EVERY_MINUTE, catch_up="all", catch_up_within_s=120.0)
    assert minutes(everything, 330) == ([4, 5], 5, 3)
    runs, last, _ = minutes(replace(everything, catch_up_within_s=200_000.0), 180_000)
    assert (len(runs), last) == (AT_ONCE, AT_ONCE)


def test_it_begins_and_ends_when_it_says() -> None:
    bounded = replace(EVERY_MINUTE, starts_at=START + 3 * MINUTE, ends_at=START + 5 * MINUTE)
    assert due(bounded, START + 3 * MINUTE - 1) is None
    assert minutes(bounded, 180) == ([3], 3, 0)
    assert minutes(bounded, 3_600) == ([5], 5, 2)
    over = replace(bounded, last=START + 5 * MINUTE)
    assert due(over, START + 3_600 * SECOND) is None
    assert over.next_run(over.last) is None


def test_a_paused_one_is_never_due() -> None:
    assert due(replace(EVERY_MINUTE, paused=""), START + 10 * MINUTE) is None


def test_a_clock_set_back_a_little_repeats_nothing_and_one_set_back_far_begins_anew() -> None:
    ahead = replace(EVERY_MINUTE, last=START + BACK_US)
    assert due(ahead, START) is None
    found = due(replace(EVERY_MINUTE, last=START + BACK_US + 1), START)
    assert found is not None
    assert (found.runs, found.entry.last, found.entry.restarted_at) == ([], START, START)


def test_all_processes_agree_on_what_a_run_is() -> None:
    entry = replace(EVERY_MINUTE, jitter_s=30.0, put={"priority": 3, "labels": ["a"], "metadata": {"by": "me"}})
    item = entry.item("report", START)
    assert item == entry.item("report", START)
    assert (item.id, item.priority, item.labels, item.key) == ("report@2026-05-01T12:00:00Z", 3, ("a",), '["schedule","report"]')
    assert item.metadata == Raw(b'{"by":"me","schedule":"report","scheduled_for":"2026-05-01T12:00:00Z"}')
    assert 0 < item.delay_s < 30
    assert len({jitter_of("report", START + run * MINUTE, 30.0) for run in range(50)}) == 50
