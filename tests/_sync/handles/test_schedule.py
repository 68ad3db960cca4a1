# Generated from tests/_async/handles/test_schedule.py by tools/unasync.py; do not edit.
"""The handle of a schedule: saving, changing, pausing, looking."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from holdfast._sync.flows import scheduling
from holdfast._sync.flows.ticking import Ticker
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.schedule import Schedule
from holdfast.client import ControlPlaneClient
from holdfast.commands import Browse
from holdfast.errors import Refused, ScheduleMissing
from holdfast.schedules.definition import PUT_OPTIONS
from holdfast.schedules.rules import Every
from holdfast.testing.clock import START_US, FakeClock

START = datetime.fromtimestamp(START_US / 1_000_000, UTC)
MINUTE = START.replace(second=0) + timedelta(minutes=1)


@pytest.fixture
def beat(client: ControlPlaneClient) -> Schedule:
    made = Schedule("beat", "* * * * *", ("jobs", {"n": 1}), client=client)
    made.save()
    return made


def test_a_new_one_runs_first_after_it_was_saved(beat: Schedule) -> None:
    status = beat.status()
    assert (status.rule, status.queue, status.runs, status.last_run, status.next_run) == ("* * * * *", "jobs", 0, None, MINUTE)
    assert beat.next_runs(2) == [MINUTE, MINUTE + timedelta(minutes=1)]


def test_what_is_put_has_the_value_every_option_and_the_moment(client: ControlPlaneClient, clock: FakeClock) -> None:
    options: Any = {"priority": 4, "max_attempts": 2, "dead_letter_queue": "dead", "labels": ["nightly"], "metadata": {"by": "ops"}}
    options |= {"group": "ann", "key": ("mail", 1), "start_within_s": 30.0}
    assert options.keys() == PUT_OPTIONS, "an option that was added is to be tried, too"
    schedule = Schedule("beat", Every(minutes=1), ("jobs", [1]), client=client, **options)
    schedule.save()
    clock.advance(60.0)
    Ticker(client.store, "me").tick()
    Queue.from_name("others", client=client).put([1], **options)
    (run,) = (client.store.execute(Browse("jobs"))).messages
    (put,) = (client.store.execute(Browse("others"))).messages
    told = {"by": "ops", "schedule": "beat", "scheduled_for": f"{MINUTE:%Y-%m-%dT%H:%M:%SZ}"}
    assert replace(run, queue="", id="", n=0, metadata=None) == replace(put, queue="", id="", n=0, metadata=None)
    assert json.decode(run.metadata or b"") == told


def test_saving_it_again_changes_it_and_keeps_what_became_of_it(client: ControlPlaneClient, beat: Schedule, clock: FakeClock) -> None:
    clock.advance(60.0)
    Ticker(client.store, "me").tick()
    Schedule("beat", "* * * * *", ("others", 2), client=client).save()
    status = beat.status()
    assert (status.queue, status.runs, status.last_run) == ("others", 1, MINUTE)


def test_another_rule_begins_after_now_and_catches_up_with_nothing(client: ControlPlaneClient, beat: Schedule, clock: FakeClock) -> None:
    clock.advance(3_600.0)
    Schedule("beat", "*/2 * * * *", ("jobs", 1), client=client).save()
    Ticker(client.store, "me").tick()
    assert (beat.status()).runs == 0


def test_a_paused_one_says_why_and_goes_on_after_now(client: ControlPlaneClient, beat: Schedule, clock: FakeClock) -> None:
    beat.pause("the database moves")
    clock.advance(600.0)
    Ticker(client.store, "me").tick()
    paused = beat.status()
    assert (paused.paused, paused.next_run, paused.runs) == ("the database moves", None, 0)
    beat.resume()
    assert (beat.status()).next_run == MINUTE + timedelta(minutes=10)
    Ticker(client.store, "me").tick()
    assert (beat.status()).runs == 0, "what passed meanwhile is not caught up with"


def test_a_run_can_be_put_now(client: ControlPlaneClient, beat: Schedule) -> None:
    job = beat.run_now()
    again = beat.run_now()
    assert (job.queue, again.id) == ("jobs", job.id), "skip holds for it, too"
    assert Queue.from_name("jobs", client=client).length() == 1


def test_they_are_listed_by_name_and_removed(client: ControlPlaneClient, beat: Schedule) -> None:
    Schedule("alone", Every(hours=1), ("jobs", 1), client=client).save()
    assert [status.name for status in Schedule.list(client=client)] == ["alone", "beat"]
    assert [status.name for status in Schedule.list("b", client=client)] == ["beat"]
    assert (beat.delete(), beat.delete()) == (True, False)
    with pytest.raises(ScheduleMissing, match="beat"):
        beat.status()
    with pytest.raises(ScheduleMissing, match="beat"):
        Schedule.from_name("beat", client=client).next_runs()


def test_of_two_who_change_it_at_once_one_is_refused(client: ControlPlaneClient, beat: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = scheduling.found(client.store, "beat")
    beat.pause("first")

    def before(*_: object) -> object:
        return stored

    monkeypatch.setattr(scheduling, "found", before)
    with pytest.raises(Refused, match="another caller"):
        beat.pause("second")


def test_a_handle_from_a_name_has_no_rule_to_save(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="has no rule"):
        Schedule.from_name("beat", client=client).save()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tz": "Mars/Base"}, "no time zone"),
        ({"jitter_s": -1}, "jitter_s"),
        ({"catch_up": "some"}, "catch_up"),
        ({"overlap": "never"}, "overlap"),
        ({"starts_at": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001 - what is wrong with it
        ({"priority": 2**60}, "priority"),
    ],
)
def test_options_that_make_no_sense_are_refused_when_it_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Schedule("beat", "* * * * *", ("jobs", 1), **options)


def test_options_that_there_are_not_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="overlap"):
        Schedule("beat", "* * * * *", ("jobs", 1), overlaps="skip")  # type: ignore[call-arg]


def test_a_run_is_explained_with_its_schedule(client: ControlPlaneClient, beat: Schedule, clock: FakeClock) -> None:
    jobs = Queue[Any].from_name("jobs", client=client)
    run = f"beat@{MINUTE:%Y-%m-%dT%H:%M:%SZ}"
    ahead = jobs.explain(run)
    assert (ahead.reason, ahead.until) == ("absent", MINUTE)
    assert ahead.sentence.endswith(f"Schedule 'beat' has its next run at {MINUTE.isoformat()}.")
    beat.pause("holidays")
    assert "is paused, and puts no run until it is resumed; the reason given: holidays" in (jobs.explain(run)).sentence
    beat.resume()
    clock.advance(60.0)
    Ticker(client.store, "me").tick()
    waiting = jobs.explain(run)
    assert (waiting.reason, waiting.sentence.partition("It is ")[2]) == ("ready", f"the run of schedule 'beat' for {run[5:]}.")
    jobs.cancel(run)
    assert (jobs.explain(run)).sentence.endswith("Schedule 'beat' has put this run, or left it out, already.")
    for other in ("beat", "beat@", "other@2026-01-01T00:00:00Z", "@2026-01-01T00:00:00Z", "beat@2026-01-01T00:00:00"):
        assert "chedule" not in (jobs.explain(other)).sentence
