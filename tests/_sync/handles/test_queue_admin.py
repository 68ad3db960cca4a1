# Generated from tests/_async/handles/test_queue_admin.py by tools/unasync.py; do not edit.
"""Looking into a queue, explaining, cancelling, redriving and pruning."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast._sync.flows.copying import raise_numbers
from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient
from holdfast.results import QueueResponse
from holdfast.testing.clock import START_US, FakeClock

START = datetime.fromtimestamp(START_US / 1_000_000, UTC)


@pytest.fixture
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue.from_name("jobs", client=client)


def kill(jobs: Queue[Any], value: object, error: str = "broken", **options: Any) -> str:
    """Put a message and make it a dead letter."""
    put_id = jobs.put(value, **options)
    (claim,) = jobs.claim_many(1, claimer="w")
    jobs.bury(claim, error=error)
    return put_id


def test_peek_shows_what_a_claim_would_get(jobs: Queue[Any]) -> None:
    assert jobs.peek() is None
    jobs.put("later", delay_s=10, priority=9)
    jobs.put("now")
    first = jobs.peek()
    assert first is not None
    assert (first.value, first.state, first.attempts) == ("now", "ready", 0)
    assert jobs.length() == 2


def test_browsing_goes_by_state_and_page(jobs: Queue[Any]) -> None:
    jobs.put_many(range(5))
    jobs.claim_many(2, claimer="w", lease_s=30.0)
    first = jobs.browse(limit=2)
    rest = jobs.browse(limit=2, after=first[-1])
    assert [message.value for message in (*first, *rest)] == [2, 3, 4]
    leased = jobs.browse(state="leased")
    assert [(message.value, message.claimer, message.expires_at) for message in leased] == [
        (0, "w", START + timedelta(seconds=30)),
        (1, "w", START + timedelta(seconds=30)),
    ]


def test_what_does_not_fit_the_type_is_seen_as_it_is(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put({"no": "number"})
    (message,) = Queue.from_name("jobs", type=int, client=client).browse()
    assert message.value == {"no": "number"}


def test_browsing_by_key(jobs: Queue[Any]) -> None:
    jobs.put_many(["a", "b", "c"], keys=["user-1", "user-2", "other"])
    assert [message.key for message in jobs.browse(prefix="user-")] == ["user-1", "user-2"]


def test_stats_count_every_state(jobs: Queue[Any]) -> None:
    kill(jobs, "dead")
    jobs.put("claimed", key="k")
    jobs.claim(claimer="w")
    jobs.put("buffered", key="k")
    jobs.put("ready")
    jobs.put("delayed", delay_s=9)
    stats = jobs.stats()
    assert (stats.ready, stats.delayed, stats.buffered, stats.leased, stats.dead, stats.total) == (1, 1, 1, 1, 1, 5)
    assert stats.holders == {"w": 1}
    assert jobs.length() == 3


def test_cancelling_by_id_leaves_what_somebody_holds(jobs: Queue[Any]) -> None:
    held, first, second = [jobs.put(value) for value in (1, 2, 3)]
    jobs.claim(claimer="w")
    assert jobs.cancel(first) == QueueResponse(1)
    assert jobs.cancel([held, second, "unknown"]) == QueueResponse(1)
    assert (jobs.stats()).leased == 1


def test_cancelling_by_filter(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put("old")
    clock.advance(60)
    jobs.put("user", key="user-1")
    jobs.put("new")
    assert jobs.cancel(older_than_s=30) == QueueResponse(1)
    assert jobs.cancel(prefix="user-") == QueueResponse(1)
    assert [message.value for message in jobs.browse()] == ["new"]


def test_cancelling_everything_by_accident_is_refused(jobs: Queue[Any]) -> None:
    with pytest.raises(ValueError, match="clear"):
        jobs.cancel()


def test_dead_letters_are_redriven_with_a_fresh_budget(jobs: Queue[Any]) -> None:
    put_id = kill(jobs, "again", max_attempts=2)
    assert jobs.redrive() == QueueResponse(1)
    (claim,) = jobs.claim_many(1, claimer="w")
    assert (claim.id, claim.attempts, claim.failures) == (put_id, 2, 0)


def test_some_are_redriven_by_id_or_by_error(jobs: Queue[Any]) -> None:
    first, second, third = [kill(jobs, number, f"error {number}") for number in (1, 2, 3)]
    assert jobs.redrive(first) == QueueResponse(1)
    assert jobs.redrive(error_contains="error 3") == QueueResponse(1)
    assert [message.id for message in jobs.dead_letters()] == [second]
    assert {message.id for message in jobs.browse()} == {first, third}


def test_a_redrive_at_a_rate_spaces_them_out(jobs: Queue[Any]) -> None:
    for number in range(3):
        kill(jobs, number)
    jobs.redrive(rate_per_s=2.0, delay_s=10.0)
    assert [message.due_at for message in jobs.browse()] == [START + timedelta(seconds=s) for s in (10, 10.5, 11)]


def test_a_rate_of_nothing_is_refused(jobs: Queue[Any]) -> None:
    with pytest.raises(ValueError, match="rate_per_s"):
        jobs.redrive(rate_per_s=0.0)


def test_a_redrive_of_more_than_a_page_takes_all(jobs: Queue[Any]) -> None:
    jobs.put_many(range(1_200))
    jobs.bury(jobs.claim_many(1_200, claimer="w"))
    assert jobs.redrive(rate_per_s=1_000.0) == QueueResponse(1_200)
    (last,) = (jobs.browse(limit=1_200))[-1:]
    assert last.due_at == START + timedelta(seconds=1.199)


def test_a_dead_letter_queue_is_redriven_into_another(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put("moved", max_attempts=1, dead_letter_queue="dead")
    jobs.fail(jobs.claim_many(1, claimer="w"))
    dead = Queue.from_name("dead", client=client)
    assert dead.length() == 1
    assert dead.redrive(to="jobs") == QueueResponse(1)
    assert (dead.length(), jobs.get()) == (0, "moved")


def test_a_redrive_names_the_dead_letters_whose_key_is_taken(jobs: Queue[Any]) -> None:
    old = jobs.put("old", key="k")
    jobs.bury(jobs.claim_many(1, claimer="w"))
    jobs.put("new", key="k")
    assert jobs.redrive() == QueueResponse(0, kept={old: "key"})
    assert jobs.get() == "new"
    assert jobs.redrive() == QueueResponse(1)


def test_old_dead_letters_are_pruned(jobs: Queue[Any], clock: FakeClock) -> None:
    kill(jobs, "old")
    clock.advance(100)
    kill(jobs, "new")
    assert jobs.prune_dead_letters(60) == QueueResponse(1)
    assert [message.value for message in jobs.dead_letters()] == ["new"]


def test_explaining_what_is_ready_and_what_is_not_there(jobs: Queue[Any]) -> None:
    put_id = jobs.put(1)
    ready = jobs.explain(put_id)
    assert ready.reason == "ready"
    assert "nobody has asked" in str(ready)
    assert (jobs.explain("unknown")).reason == "absent"


def test_explaining_says_how_many_are_ahead(jobs: Queue[Any]) -> None:
    ids = [jobs.put(number) for number in range(3)]
    assert "nobody has asked" in str(jobs.explain(ids[0]))
    assert "1 message is ahead of it" in str(jobs.explain(ids[1]))
    assert "2 messages are ahead of it" in str(jobs.explain(ids[2]))
    last = (jobs.put_many(range(100)))[-1]
    assert "more than 100 messages are ahead of it" in str(jobs.explain(last))


def test_explaining_a_delay(jobs: Queue[Any]) -> None:
    why = jobs.explain(jobs.put(1, delay_s=10))
    assert (why.reason, why.until) == ("delayed", START + timedelta(seconds=10))


def test_explaining_a_claim_while_it_is_held(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put(1)
    (claim,) = jobs.claim_many(1, claimer="worker-a", lease_s=30.0)
    why = jobs.explain(claim)
    assert (why.reason, why.claimer, why.until) == ("claimed", "worker-a", START + timedelta(seconds=30))
    clock.advance(30)
    ended = jobs.explain(claim)
    assert ended.reason == "ready"
    assert "'worker-a' ended" in ended.sentence


def test_explaining_who_stands_before_it_under_its_key(jobs: Queue[Any]) -> None:
    first = jobs.put("first", key="k")
    jobs.claim(claimer="worker-a", lease_s=30.0)
    why = jobs.explain(jobs.put("second", key="k"))
    assert (why.reason, why.claimer, why.until) == ("behind_key", "worker-a", START + timedelta(seconds=30))
    assert first in why.sentence


def test_explaining_a_paused_queue(jobs: Queue[Any]) -> None:
    put_id = jobs.put(1)
    jobs.pause()
    assert (jobs.explain(put_id)).reason == "paused"


def test_explaining_a_death(jobs: Queue[Any]) -> None:
    kill(jobs, 1, "no such file")
    (dead,) = jobs.dead_letters()
    why = jobs.explain(dead)
    assert why.reason == "dead"
    assert "no such file" in why.sentence


def test_explaining_what_came_too_late(jobs: Queue[Any], clock: FakeClock) -> None:
    put_id = jobs.put(1, start_within_s=5)
    clock.advance(5)
    assert (jobs.explain(put_id)).reason == "late"


def test_a_watch_begins_with_what_is_there(jobs: Queue[Any]) -> None:
    jobs.put("a")
    assert [event.event for event in jobs.watch(snapshot=True, timeout_s=0.0)] == ["snapshot", "synced"]


def test_rates_tell_work_waits_durations_and_failures_of_the_last_seconds(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_many(["before"])
    clock.advance(100)
    jobs.ack(jobs.claim_many(1, claimer="w"))
    clock.advance(100)
    jobs.put_many(["a", "b", "c"])
    clock.advance(2)
    first, second, _third = jobs.claim_many(3, claimer="w", lease_s=20)
    clock.advance(4)
    jobs.ack(first)
    jobs.release(second)
    clock.advance(30)
    assert len(jobs.claim_many(2, claimer="w")) == 2
    told = jobs.rates(60)
    assert (told.put, told.claimed, told.done, told.returned, told.expired) == (3, 5, 1, 1, 1)
    assert (told.window_s, told.is_whole, told.done_per_s) == (60, True, 1 / 60)
    assert (told.failed, told.failed_share) == (0, 0.5)
    assert (told.median_wait_s, told.median_duration_s) == (2, 4)
    assert (jobs.rates(300)).done == 2


def test_a_failure_counts_as_one_and_a_release_does_not(jobs: Queue[Any]) -> None:
    jobs.put_many(["done", "released", "failed", "buried"])
    done, released, failed, buried = jobs.claim_many(4, claimer="w")
    jobs.ack(done)
    jobs.release(released)
    assert (jobs.rates()).failed_share == 0
    jobs.fail(failed, error="broken")
    jobs.bury(buried)
    told = jobs.rates()
    assert (told.returned, told.failed, told.buried) == (2, 2, 1)
    assert told.failed_share == pytest.approx(2 / 3)


def test_rates_of_groups_are_told_apart(jobs: Queue[Any]) -> None:
    jobs.put("a", group="x")
    jobs.put("b")
    jobs.ack(jobs.claim_many(2, claimer="w"))
    told = jobs.group_rates()
    assert {name: (one.put, one.done) for name, one in told.items()} == {"": (1, 1), "x": (1, 1)}


def test_a_reading_of_rates_ends_at_its_bound_and_says_so(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_many(["a"])
    clock.advance(10)
    for number in range(1_200):
        jobs.put(number)
        clock.advance(0.01)
    whole = jobs.rates(60)
    assert (whole.put, whole.is_whole, whole.window_s) == (1_201, True, 60)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast._sync.flows.rating.EVENTS_MOST", 500)
        told = jobs.rates(60)
    assert (told.put, told.is_whole) == (500, False)
    assert told.window_s == pytest.approx(5, abs=0.1)


def test_rates_reach_back_over_numbers_that_other_queues_were_given(client: ControlPlaneClient, jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put("first")
    clock.advance(1)
    other = Queue[int].from_name("other", client=client)
    for number in range(300):
        other.put(number)
        jobs.put(number)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast._sync.flows.rating.PAGE", 10)
        patched.setattr("holdfast._sync.flows.rating.EVENTS_MOST", 400)
        told = jobs.rates(60)
    assert (told.put, told.is_whole) == (301, True)


def test_rates_are_of_the_newest_events_also_behind_a_leap_of_the_numbers(jobs: Queue[Any], clock: FakeClock) -> None:
    for number in range(30):
        jobs.put(number)
    clock.advance(1)
    raise_numbers(jobs._store())
    jobs.put_many([1, 2, 3])
    clock.advance(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast._sync.flows.rating.PAGE", 10)
        told = jobs.rates(60)
    assert (told.put, told.is_whole, told.window_s) == (3, False, 1)
