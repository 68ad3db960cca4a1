"""Looking into a queue, explaining, cancelling, redriving and pruning."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast._async.flows.copying import raise_numbers
from holdfast._async.handles.queue import AsyncQueue
from holdfast.client import ControlPlaneClient
from holdfast.results import QueueResponse
from holdfast.testing.clock import START_US, FakeClock

pytestmark = pytest.mark.anyio

START = datetime.fromtimestamp(START_US / 1_000_000, UTC)


@pytest.fixture
def jobs(client: ControlPlaneClient) -> AsyncQueue[Any]:
    return AsyncQueue.from_name("jobs", client=client)


async def kill(jobs: AsyncQueue[Any], value: object, error: str = "broken", **options: Any) -> str:
    """Put a message and make it a dead letter."""
    put_id = await jobs.put(value, **options)
    (claim,) = await jobs.claim_many(1, claimer="w")
    await jobs.bury(claim, error=error)
    return put_id


async def test_peek_shows_what_a_claim_would_get(jobs: AsyncQueue[Any]) -> None:
    assert await jobs.peek() is None
    await jobs.put("later", delay_s=10, priority=9)
    await jobs.put("now")
    first = await jobs.peek()
    assert first is not None
    assert (first.value, first.state, first.attempts) == ("now", "ready", 0)
    assert await jobs.length() == 2


async def test_browsing_goes_by_state_and_page(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many(range(5))
    await jobs.claim_many(2, claimer="w", lease_s=30.0)
    first = await jobs.browse(limit=2)
    rest = await jobs.browse(limit=2, after=first[-1])
    assert [message.value for message in (*first, *rest)] == [2, 3, 4]
    leased = await jobs.browse(state="leased")
    assert [(message.value, message.claimer, message.expires_at) for message in leased] == [
        (0, "w", START + timedelta(seconds=30)),
        (1, "w", START + timedelta(seconds=30)),
    ]


async def test_what_does_not_fit_the_type_is_seen_as_it_is(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"no": "number"})
    (message,) = await AsyncQueue.from_name("jobs", type=int, client=client).browse()
    assert message.value == {"no": "number"}


async def test_browsing_by_key(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many(["a", "b", "c"], keys=["user-1", "user-2", "other"])
    assert [message.key for message in await jobs.browse(prefix="user-")] == ["user-1", "user-2"]


async def test_stats_count_every_state(jobs: AsyncQueue[Any]) -> None:
    await kill(jobs, "dead")
    await jobs.put("claimed", key="k")
    await jobs.claim(claimer="w")
    await jobs.put("buffered", key="k")
    await jobs.put("ready")
    await jobs.put("delayed", delay_s=9)
    stats = await jobs.stats()
    assert (stats.ready, stats.delayed, stats.buffered, stats.leased, stats.dead, stats.total) == (1, 1, 1, 1, 1, 5)
    assert stats.holders == {"w": 1}
    assert await jobs.length() == 3


async def test_cancelling_by_id_leaves_what_somebody_holds(jobs: AsyncQueue[Any]) -> None:
    held, first, second = [await jobs.put(value) for value in (1, 2, 3)]
    await jobs.claim(claimer="w")
    assert await jobs.cancel(first) == QueueResponse(1)
    assert await jobs.cancel([held, second, "unknown"]) == QueueResponse(1)
    assert (await jobs.stats()).leased == 1


async def test_cancelling_by_filter(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put("old")
    clock.advance(60)
    await jobs.put("user", key="user-1")
    await jobs.put("new")
    assert await jobs.cancel(older_than_s=30) == QueueResponse(1)
    assert await jobs.cancel(prefix="user-") == QueueResponse(1)
    assert [message.value for message in await jobs.browse()] == ["new"]


async def test_cancelling_everything_by_accident_is_refused(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(ValueError, match="clear"):
        await jobs.cancel()


async def test_dead_letters_are_redriven_with_a_fresh_budget(jobs: AsyncQueue[Any]) -> None:
    put_id = await kill(jobs, "again", max_attempts=2)
    assert await jobs.redrive() == QueueResponse(1)
    (claim,) = await jobs.claim_many(1, claimer="w")
    assert (claim.id, claim.attempts, claim.failures) == (put_id, 2, 0)


async def test_some_are_redriven_by_id_or_by_error(jobs: AsyncQueue[Any]) -> None:
    first, second, third = [await kill(jobs, number, f"error {number}") for number in (1, 2, 3)]
    assert await jobs.redrive(first) == QueueResponse(1)
    assert await jobs.redrive(error_contains="error 3") == QueueResponse(1)
    assert [message.id for message in await jobs.dead_letters()] == [second]
    assert {message.id for message in await jobs.browse()} == {first, third}


async def test_a_redrive_at_a_rate_spaces_them_out(jobs: AsyncQueue[Any]) -> None:
    for number in range(3):
        await kill(jobs, number)
    await jobs.redrive(rate_per_s=2.0, delay_s=10.0)
    assert [message.due_at for message in await jobs.browse()] == [START + timedelta(seconds=s) for s in (10, 10.5, 11)]


async def test_a_rate_of_nothing_is_refused(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(ValueError, match="rate_per_s"):
        await jobs.redrive(rate_per_s=0.0)


async def test_a_redrive_of_more_than_a_page_takes_all(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many(range(1_200))
    await jobs.bury(await jobs.claim_many(1_200, claimer="w"))
    assert await jobs.redrive(rate_per_s=1_000.0) == QueueResponse(1_200)
    (last,) = (await jobs.browse(limit=1_200))[-1:]
    assert last.due_at == START + timedelta(seconds=1.199)


async def test_a_dead_letter_queue_is_redriven_into_another(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put("moved", max_attempts=1, dead_letter_queue="dead")
    await jobs.fail(await jobs.claim_many(1, claimer="w"))
    dead = AsyncQueue.from_name("dead", client=client)
    assert await dead.length() == 1
    assert await dead.redrive(to="jobs") == QueueResponse(1)
    assert (await dead.length(), await jobs.get()) == (0, "moved")


async def test_a_redrive_names_the_dead_letters_whose_key_is_taken(jobs: AsyncQueue[Any]) -> None:
    old = await jobs.put("old", key="k")
    await jobs.bury(await jobs.claim_many(1, claimer="w"))
    await jobs.put("new", key="k")
    assert await jobs.redrive() == QueueResponse(0, kept={old: "key"})
    assert await jobs.get() == "new"
    assert await jobs.redrive() == QueueResponse(1)


async def test_old_dead_letters_are_pruned(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await kill(jobs, "old")
    clock.advance(100)
    await kill(jobs, "new")
    assert await jobs.prune_dead_letters(60) == QueueResponse(1)
    assert [message.value for message in await jobs.dead_letters()] == ["new"]


async def test_explaining_what_is_ready_and_what_is_not_there(jobs: AsyncQueue[Any]) -> None:
    put_id = await jobs.put(1)
    ready = await jobs.explain(put_id)
    assert ready.reason == "ready"
    assert "nobody has asked" in str(ready)
    assert (await jobs.explain("unknown")).reason == "absent"


async def test_explaining_says_how_many_are_ahead(jobs: AsyncQueue[Any]) -> None:
    ids = [await jobs.put(number) for number in range(3)]
    assert "nobody has asked" in str(await jobs.explain(ids[0]))
    assert "1 message is ahead of it" in str(await jobs.explain(ids[1]))
    assert "2 messages are ahead of it" in str(await jobs.explain(ids[2]))
    last = (await jobs.put_many(range(100)))[-1]
    assert "more than 100 messages are ahead of it" in str(await jobs.explain(last))


async def test_explaining_a_delay(jobs: AsyncQueue[Any]) -> None:
    why = await jobs.explain(await jobs.put(1, delay_s=10))
    assert (why.reason, why.until) == ("delayed", START + timedelta(seconds=10))


async def test_explaining_a_claim_while_it_is_held(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put(1)
    (claim,) = await jobs.claim_many(1, claimer="worker-a", lease_s=30.0)
    why = await jobs.explain(claim)
    assert (why.reason, why.claimer, why.until) == ("claimed", "worker-a", START + timedelta(seconds=30))
    clock.advance(30)
    ended = await jobs.explain(claim)
    assert ended.reason == "ready"
    assert "'worker-a' ended" in ended.sentence


async def test_explaining_who_stands_before_it_under_its_key(jobs: AsyncQueue[Any]) -> None:
    first = await jobs.put("first", key="k")
    await jobs.claim(claimer="worker-a", lease_s=30.0)
    why = await jobs.explain(await jobs.put("second", key="k"))
    assert (why.reason, why.claimer, why.until) == ("behind_key", "worker-a", START + timedelta(seconds=30))
    assert first in why.sentence


async def test_explaining_a_paused_queue(jobs: AsyncQueue[Any]) -> None:
    put_id = await jobs.put(1)
    await jobs.pause()
    assert (await jobs.explain(put_id)).reason == "paused"


async def test_explaining_a_death(jobs: AsyncQueue[Any]) -> None:
    await kill(jobs, 1, "no such file")
    (dead,) = await jobs.dead_letters()
    why = await jobs.explain(dead)
    assert why.reason == "dead"
    assert "no such file" in why.sentence


async def test_explaining_what_came_too_late(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    put_id = await jobs.put(1, start_within_s=5)
    clock.advance(5)
    assert (await jobs.explain(put_id)).reason == "late"


async def test_a_watch_begins_with_what_is_there(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("a")
    assert [event.event async for event in jobs.watch(snapshot=True, timeout_s=0.0)] == ["snapshot", "synced"]


async def test_rates_tell_work_waits_durations_and_failures_of_the_last_seconds(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_many(["before"])
    clock.advance(100)
    await jobs.ack(await jobs.claim_many(1, claimer="w"))
    clock.advance(100)
    await jobs.put_many(["a", "b", "c"])
    clock.advance(2)
    first, second, _third = await jobs.claim_many(3, claimer="w", lease_s=20)
    clock.advance(4)
    await jobs.ack(first)
    await jobs.release(second)
    clock.advance(30)
    assert len(await jobs.claim_many(2, claimer="w")) == 2
    told = await jobs.rates(60)
    assert (told.put, told.claimed, told.done, told.returned, told.expired) == (3, 5, 1, 1, 1)
    assert (told.window_s, told.is_whole, told.done_per_s) == (60, True, 1 / 60)
    assert (told.failed, told.failed_share) == (0, 0.5)
    assert (told.median_wait_s, told.median_duration_s) == (2, 4)
    assert (await jobs.rates(300)).done == 2


async def test_a_failure_counts_as_one_and_a_release_does_not(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many(["done", "released", "failed", "buried"])
    done, released, failed, buried = await jobs.claim_many(4, claimer="w")
    await jobs.ack(done)
    await jobs.release(released)
    assert (await jobs.rates()).failed_share == 0
    await jobs.fail(failed, error="broken")
    await jobs.bury(buried)
    told = await jobs.rates()
    assert (told.returned, told.failed, told.buried) == (2, 2, 1)
    assert told.failed_share == pytest.approx(2 / 3)


async def test_rates_of_groups_are_told_apart(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("a", group="x")
    await jobs.put("b")
    await jobs.ack(await jobs.claim_many(2, claimer="w"))
    told = await jobs.group_rates()
    assert {name: (one.put, one.done) for name, one in told.items()} == {"": (1, 1), "x": (1, 1)}


async def test_a_reading_of_rates_ends_at_its_bound_and_says_so(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_many(["a"])
    clock.advance(10)
    for number in range(1_200):
        await jobs.put(number)
        clock.advance(0.01)
    whole = await jobs.rates(60)
    assert (whole.put, whole.is_whole, whole.window_s) == (1_201, True, 60)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast._async.flows.rating.EVENTS_MOST", 500)
        told = await jobs.rates(60)
    assert (told.put, told.is_whole) == (500, False)
    assert told.window_s == pytest.approx(5, abs=0.1)


async def test_rates_reach_back_over_numbers_that_other_queues_were_given(
    client: ControlPlaneClient, jobs: AsyncQueue[Any], clock: FakeClock
) -> None:
    await jobs.put("first")
    clock.advance(1)
    other = AsyncQueue[int].from_name("other", client=client)
    for number in range(300):
        await other.put(number)
        await jobs.put(number)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast._async.flows.rating.PAGE", 10)
        patched.setattr("holdfast._async.flows.rating.EVENTS_MOST", 400)
        told = await jobs.rates(60)
    assert (told.put, told.is_whole) == (301, True)


async def test_rates_are_of_the_newest_events_also_behind_a_leap_of_the_numbers(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    for number in range(30):
        await jobs.put(number)
    clock.advance(1)
    await raise_numbers(jobs._store())
    await jobs.put_many([1, 2, 3])
    clock.advance(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast._async.flows.rating.PAGE", 10)
        told = await jobs.rates(60)
    assert (told.put, told.is_whole, told.window_s) == (3, False, 1)
