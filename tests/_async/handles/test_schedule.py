"""The handle of a schedule: saving, changing, pausing, looking."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from holdfast._async.flows import scheduling
from holdfast._async.flows.ticking import AsyncTicker
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.schedule import AsyncSchedule
from holdfast.client import ControlPlaneClient
from holdfast.commands import Browse
from holdfast.errors import Refused, ScheduleMissing
from holdfast.schedules.definition import PUT_OPTIONS
from holdfast.schedules.rules import Every
from holdfast.testing.clock import START_US, FakeClock

pytestmark = pytest.mark.anyio

START = datetime.fromtimestamp(START_US / 1_000_000, UTC)
MINUTE = START.replace(second=0) + timedelta(minutes=1)


@pytest.fixture
async def beat(client: ControlPlaneClient) -> AsyncSchedule:
    made = AsyncSchedule("beat", "* * * * *", ("jobs", {"n": 1}), client=client)
    await made.save()
    return made


async def test_a_new_one_runs_first_after_it_was_saved(beat: AsyncSchedule) -> None:
    status = await beat.status()
    assert (status.rule, status.queue, status.runs, status.last_run, status.next_run) == ("* * * * *", "jobs", 0, None, MINUTE)
    assert await beat.next_runs(2) == [MINUTE, MINUTE + timedelta(minutes=1)]


async def test_what_is_put_has_the_value_every_option_and_the_moment(client: ControlPlaneClient, clock: FakeClock) -> None:
    options: Any = {"priority": 4, "max_attempts": 2, "dead_letter_queue": "dead", "labels": ["nightly"], "metadata": {"by": "ops"}}
    options |= {"group": "ann", "key": ("mail", 1), "start_within_s": 30.0}
    assert options.keys() == PUT_OPTIONS, "an option that was added is to be tried, too"
    schedule = AsyncSchedule("beat", Every(minutes=1), ("jobs", [1]), client=client, **options)
    await schedule.save()
    clock.advance(60.0)
    await AsyncTicker(client.async_store, "me").tick()
    await AsyncQueue.from_name("others", client=client).put([1], **options)
    (run,) = (await client.async_store.execute(Browse("jobs"))).messages
    (put,) = (await client.async_store.execute(Browse("others"))).messages
    told = {"by": "ops", "schedule": "beat", "scheduled_for": f"{MINUTE:%Y-%m-%dT%H:%M:%SZ}"}
    assert replace(run, queue="", id="", n=0, metadata=None) == replace(put, queue="", id="", n=0, metadata=None)
    assert json.decode(run.metadata or b"") == told


async def test_saving_it_again_changes_it_and_keeps_what_became_of_it(
    client: ControlPlaneClient, beat: AsyncSchedule, clock: FakeClock
) -> None:
    clock.advance(60.0)
    await AsyncTicker(client.async_store, "me").tick()
    await AsyncSchedule("beat", "* * * * *", ("others", 2), client=client).save()
    status = await beat.status()
    assert (status.queue, status.runs, status.last_run) == ("others", 1, MINUTE)


async def test_another_rule_begins_after_now_and_catches_up_with_nothing(
    client: ControlPlaneClient, beat: AsyncSchedule, clock: FakeClock
) -> None:
    clock.advance(3_600.0)
    await AsyncSchedule("beat", "*/2 * * * *", ("jobs", 1), client=client).save()
    await AsyncTicker(client.async_store, "me").tick()
    assert (await beat.status()).runs == 0


async def test_a_paused_one_says_why_and_goes_on_after_now(client: ControlPlaneClient, beat: AsyncSchedule, clock: FakeClock) -> None:
    await beat.pause("the database moves")
    clock.advance(600.0)
    await AsyncTicker(client.async_store, "me").tick()
    paused = await beat.status()
    assert (paused.paused, paused.next_run, paused.runs) == ("the database moves", None, 0)
    await beat.resume()
    assert (await beat.status()).next_run == MINUTE + timedelta(minutes=10)
    await AsyncTicker(client.async_store, "me").tick()
    assert (await beat.status()).runs == 0, "what passed meanwhile is not caught up with"


async def test_a_run_can_be_put_now(client: ControlPlaneClient, beat: AsyncSchedule) -> None:
    job = await beat.run_now()
    again = await beat.run_now()
    assert (job.queue, again.id) == ("jobs", job.id), "skip holds for it, too"
    assert await AsyncQueue.from_name("jobs", client=client).length() == 1


async def test_they_are_listed_by_name_and_removed(client: ControlPlaneClient, beat: AsyncSchedule) -> None:
    await AsyncSchedule("alone", Every(hours=1), ("jobs", 1), client=client).save()
    assert [status.name for status in await AsyncSchedule.list(client=client)] == ["alone", "beat"]
    assert [status.name for status in await AsyncSchedule.list("b", client=client)] == ["beat"]
    assert (await beat.delete(), await beat.delete()) == (True, False)
    with pytest.raises(ScheduleMissing, match="beat"):
        await beat.status()
    with pytest.raises(ScheduleMissing, match="beat"):
        await AsyncSchedule.from_name("beat", client=client).next_runs()


async def test_of_two_who_change_it_at_once_one_is_refused(
    client: ControlPlaneClient, beat: AsyncSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = await scheduling.found(client.async_store, "beat")
    await beat.pause("first")

    async def before(*_: object) -> object:
        return stored

    monkeypatch.setattr(scheduling, "found", before)
    with pytest.raises(Refused, match="another caller"):
        await beat.pause("second")


async def test_a_handle_from_a_name_has_no_rule_to_save(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="has no rule"):
        await AsyncSchedule.from_name("beat", client=client).save()


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
        AsyncSchedule("beat", "* * * * *", ("jobs", 1), **options)


def test_options_that_there_are_not_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="overlap"):
        AsyncSchedule("beat", "* * * * *", ("jobs", 1), overlaps="skip")  # type: ignore[call-arg]


async def test_a_run_is_explained_with_its_schedule(client: ControlPlaneClient, beat: AsyncSchedule, clock: FakeClock) -> None:
    jobs = AsyncQueue[Any].from_name("jobs", client=client)
    run = f"beat@{MINUTE:%Y-%m-%dT%H:%M:%SZ}"
    ahead = await jobs.explain(run)
    assert (ahead.reason, ahead.until) == ("absent", MINUTE)
    assert ahead.sentence.endswith(f"Schedule 'beat' has its next run at {MINUTE.isoformat()}.")
    await beat.pause("holidays")
    assert "is paused, and puts no run until it is resumed; the reason given: holidays" in (await jobs.explain(run)).sentence
    await beat.resume()
    clock.advance(60.0)
    await AsyncTicker(client.async_store, "me").tick()
    waiting = await jobs.explain(run)
    assert (waiting.reason, waiting.sentence.partition("It is ")[2]) == ("ready", f"the run of schedule 'beat' for {run[5:]}.")
    await jobs.cancel(run)
    assert (await jobs.explain(run)).sentence.endswith("Schedule 'beat' has put this run, or left it out, already.")
    for other in ("beat", "beat@", "other@2026-01-01T00:00:00Z", "@2026-01-01T00:00:00Z", "beat@2026-01-01T00:00:00"):
        assert "chedule" not in (await jobs.explain(other)).sentence
