"""When rules run: intervals, cron expressions, time zones and the two nights a year that are not like others."""

import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import MissingExtra
from holdfast.schedules.rules import SECOND, Cron, Every, Rule, rule_of
from holdfast.testing.clock import START_US
from tests.schedules.years import ZONES, runs_of_cronsim

VIENNA = "Europe/Vienna"


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def runs(rule: Rule, after: str, count: int) -> list[str]:
    found, moment = list[str](), at(after)
    for _ in range(count):
        following = rule.after(moment)
        assert following is not None
        assert rule.newest(following) == following
        assert rule.newest(following + 59 * SECOND // 60) == following
        moment = following
        found.append(datetime.fromtimestamp(moment // SECOND, UTC).isoformat()[:16])
    return found


def test_intervals_are_counted_from_one_moment_for_all() -> None:
    assert runs(Every(hours=6, offset_s=300), "2026-05-01T00:05", 3) == ["2026-05-01T06:05", "2026-05-01T12:05", "2026-05-01T18:05"]
    assert runs(Every(minutes=1), "2026-05-01T00:00", 1) == ["2026-05-01T00:01"]
    assert Every(days=1).newest(at("2026-05-01T23:59")) == at("2026-05-01T00:00")


def test_a_time_of_day_that_does_not_exist_runs_once_and_one_that_comes_twice_too() -> None:
    nightly = Cron("30 2 * * *", VIENNA)
    assert runs(nightly, "2026-03-28T12:00", 2) == ["2026-03-29T01:00", "2026-03-30T00:30"]
    assert runs(nightly, "2026-10-24T12:00", 2) == ["2026-10-25T00:30", "2026-10-26T01:30"]


def test_what_runs_every_half_hour_does_so_in_both_hours() -> None:
    assert runs(Cron("*/30 * * * *", VIENNA), "2026-10-24T23:59", 4) == [f"2026-10-25T0{hour}" for hour in ("0:00", "0:30", "1:00", "1:30")]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("rule", ["30 2 * * *", "*/30 1-3 * * *", "15 * * * *", "0 2 1 * *", "30 1 * * SUN", "45 1,2,3 L * *"])
def test_the_runs_of_a_year_are_those_that_cronsim_lists(rule: str, zone: str) -> None:
    found, moment = list[int](), START_US
    expected = runs_of_cronsim(rule, zone, 366)
    for _ in expected:
        following = Cron(rule, zone).after(moment)
        assert following is not None
        moment = following
        found.append(moment)
    assert found == expected


@pytest.mark.parametrize(
    ("short", "long"), [("@daily", "0 0 * * *"), ("@hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"), ("@Monthly", "0 0 1 * *")]
)
def test_the_words_of_cron_are_known(short: str, long: str) -> None:
    assert runs(Cron(short, VIENNA), "2026-05-01T00:00", 3) == runs(Cron(long, VIENNA), "2026-05-01T00:00", 3)


@pytest.mark.parametrize(
    "rule",
    [
        Every(hours=6),
        Every(seconds=90, offset_s=0.5),
        Every(days=1, offset_s=86_399),
        Every(seconds=1_234_567.25),
        Cron("0 3 * * MON", "UTC"),
    ],
)
def test_a_rule_is_the_same_after_it_was_stored(rule: Any) -> None:
    again = rule_of(str(rule))
    assert [again.after(moment) for moment in (0, at("2026-05-01T00:00"))] == [rule.after(moment) for moment in (0, at("2026-05-01T00:00"))]


@pytest.mark.parametrize(
    ("rule", "zone", "says"),
    [
        ("61 * * * *", "UTC", "bad minute"),
        ("* * *", "UTC", "wrong number of fields"),
        ("0 0 31 2 *", "UTC", "bad day"),
        ("0 0 29 2 *", "Europe/Atlantis", "no time zone 'Europe/Atlantis'"),
        ("every day", "UTC", "write 'every 300 s'"),
        ("every x s", "UTC", "write 'every 300 s'"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_what_is_wrong(rule: str, zone: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        rule_of(rule, zone)


@pytest.mark.parametrize(
    "parts",
    [{}, {"seconds": 0.5}, {"hours": -1}, {"seconds": 60, "offset_s": 60}, {"hours": True}, {"hours": 1e12}, {"days": float("nan")}],
)
def test_an_interval_that_makes_no_sense_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="interval"):
        Every(**parts)


def test_without_its_package_a_cron_expression_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(MissingExtra, match=r"holdfast\[cron\]"):
        rule_of("0 3 * * *")
    assert rule_of("every 60 s").after(0) == 60 * SECOND
