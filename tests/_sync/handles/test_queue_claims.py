# Generated from tests/_async/handles/test_queue_claims.py by tools/unasync.py; do not edit.
"""Claims, work items and the `with` of a worker."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient
from holdfast.errors import ClaimLost
from holdfast.holding.hold import this_process
from holdfast.results import QueueResponse
from holdfast.testing.clock import START_US, FakeClock

START = datetime.fromtimestamp(START_US / 1_000_000, UTC)


class Job(msgspec.Struct):
    name: str


class UnshownError(Exception):
    def __str__(self) -> str:
        raise LookupError


@pytest.fixture
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue.from_name("jobs", client=client)


def claimed_one(jobs: Queue[Any], **options: Any) -> Any:
    claim = jobs.claim(claimer="worker-a", **options)
    assert claim is not None
    return claim


def test_a_claim_shows_what_it_holds(jobs: Queue[Any]) -> None:
    put_id = jobs.put({"n": 1}, key=("k", 1), metadata={"trace": "x"}, max_attempts=4)
    claim = claimed_one(jobs, lease_s=30.0)
    assert (claim.value, claim.id, claim.queue, claim.claimer) == ({"n": 1}, put_id, "jobs", "worker-a")
    assert (claim.attempts, claim.failures, claim.max_attempts, claim.last_error) == (1, 0, 4, None)
    assert (claim.key, claim.metadata) == (("k", 1), {"trace": "x"})
    assert (claim.created_at, claim.expires_at) == (START, START + timedelta(seconds=30))
    assert not claim.lost
    claim.check()


def test_an_empty_queue_has_no_claim(jobs: Queue[Any]) -> None:
    assert jobs.claim(claimer="w") is None
    assert jobs.claim_work(claimer="w", timeout_s=0.001) is None
    assert jobs.claim_many(3, claimer="w") == []
    assert jobs.take("k", claimer="w") is None


def test_a_later_claim_has_a_larger_token(jobs: Queue[Any]) -> None:
    jobs.put(1)
    first = claimed_one(jobs)
    first.release()
    assert (claimed_one(jobs)).token > first.token


def test_an_acknowledged_message_is_gone(jobs: Queue[Any]) -> None:
    jobs.put(1)
    claim = claimed_one(jobs)
    assert jobs.ack([claim]) == QueueResponse(1)
    assert (jobs.stats()).total == 0


def test_claims_are_named_by_themselves_or_by_id(jobs: Queue[Any]) -> None:
    jobs.put_many([1, 2, 3])
    first, second, third = jobs.claim_many(5, claimer="w")
    assert (jobs.ack(first)).count == 1
    assert (jobs.ack(second.claim_id)).count == 1
    assert (jobs.ack(iter([third.claim_id]))).count == 1
    assert (jobs.ack([])).count == 0


def test_a_claim_that_is_named_twice_counts_once(jobs: Queue[Any]) -> None:
    jobs.put(1)
    claim = claimed_one(jobs)
    assert jobs.ack([claim, claim, claim.claim_id]) == QueueResponse(1)


def test_failing_by_the_queue_takes_a_budget_for_those_without(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put(1)
    jobs.fail(claimed_one(jobs), error="no", max_attempts=1, dead_letter_queue="dead")
    assert Queue.from_name("dead", client=client).get() == 1


def test_a_claim_of_another_queue_is_refused(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put(1)
    claim = claimed_one(jobs)
    with pytest.raises(ValueError, match="queue 'jobs', not to 'other'"):
        Queue.from_name("other", client=client).ack(claim)
    with pytest.raises(ValueError, match="not a claim id"):
        jobs.ack("nonsense")


def test_an_ended_claim_is_lost_and_its_ack_refused(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_many([1, 2])
    stale, fresh = claimed_one(jobs, lease_s=10.0), claimed_one(jobs, lease_s=60.0)
    clock.advance(10)
    assert stale.lost
    with pytest.raises(ClaimLost):
        stale.check()
    with pytest.raises(ClaimLost) as lost:
        jobs.ack([stale, fresh])
    assert [receipt.claim_id for receipt in lost.value.lost] == [stale.claim_id]
    assert (jobs.stats()).total == 1


def test_counts_instead_of_an_error(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put(1)
    claim = claimed_one(jobs, lease_s=10.0)
    clock.advance(10)
    assert jobs.ack(claim, strict=False) == QueueResponse(0, 1, (claim.claim_id,))
    assert jobs.renew(claim, lease_s=5.0, strict=False) == QueueResponse(0, 1, (claim.claim_id,))
    with pytest.raises(ClaimLost):
        jobs.renew(claim, lease_s=5.0)


def test_releasing_or_failing_what_was_lost_raises_nothing(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put(1)
    claim = claimed_one(jobs, lease_s=10.0)
    clock.advance(10)
    assert (jobs.release(claim)).lost == 1
    assert (jobs.fail(claim)).lost == 1
    assert (jobs.bury(claim)).lost == 1
    assert (claim.release()).lost == 1
    assert (claim.fail()).lost == 1


def test_a_renewed_claim_lives_on(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put(1)
    claim = claimed_one(jobs, lease_s=10.0)
    clock.advance(5)
    assert (jobs.renew([claim], lease_s=120.0)).count == 1
    assert claim.expires_at == START + timedelta(seconds=125)
    clock.advance(100)
    assert not claim.lost
    claim.renew(lease_s=60.0)
    claim.ack()


def test_a_released_message_goes_to_the_back_or_where_it_is_sent(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_many([1, 2])
    clock.advance(1)
    jobs.release(claimed_one(jobs))
    assert (claimed_one(jobs)).value == 2
    clock.advance(1)
    claim = claimed_one(jobs)
    jobs.put(3)
    claim.release(return_to="front", delay_s=0.0)
    assert (claimed_one(jobs)).value == 1


def test_a_release_burns_no_attempt_and_can_wait(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put(1, max_attempts=1)
    (claimed_one(jobs)).release(delay_s=5.0)
    assert jobs.claim(claimer="w") is None
    clock.advance(5)
    again = claimed_one(jobs)
    assert (again.attempts, again.failures) == (2, 0)


def test_the_budget_ends_in_the_dead_letters(jobs: Queue[Any]) -> None:
    jobs.put("poison", max_attempts=2)
    jobs.fail(claimed_one(jobs), error="first")
    again = claimed_one(jobs)
    assert (again.failures, again.last_error) == (1, "first")
    again.fail(error="second")
    (dead,) = jobs.dead_letters()
    assert (dead.value, dead.state, dead.failures, dead.last_error) == ("poison", "dead", 2, "second")


def test_a_buried_message_is_dead_at_once(jobs: Queue[Any]) -> None:
    jobs.put(1, max_attempts=9)
    jobs.bury(claimed_one(jobs), error="hopeless")
    assert [message.last_error for message in jobs.dead_letters()] == ["hopeless"]


def test_a_key_is_taken_out_of_turn(jobs: Queue[Any]) -> None:
    jobs.put("a", key="a")
    jobs.put("b", key="b")
    claim = jobs.take("b", claimer="w")
    assert claim is not None
    assert (claim.value, claim.key) == ("b", "b")
    assert jobs.take("b", claimer="w") is None


def test_work_is_tried_again_until_its_budget_is_spent(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put_work({"image_id": "img-42"}, max_attempts=2, dead_letter_queue="dead", metadata={"by": "test"})
    for attempt in (1, 2):
        work = jobs.claim_work(claimer="w")
        assert work is not None
        assert (work.payload, work.attempts, work.max_attempts, work.metadata) == ({"image_id": "img-42"}, attempt, 2, {"by": "test"})
        assert (work.fail(error=f"try {attempt}")).count == 1
    assert jobs.claim_work(claimer="w") is None
    (dead,) = Queue.from_name("dead", client=client).browse()
    assert dead.value == {"image_id": "img-42"}
    assert dead.metadata is not None
    assert (dead.metadata["by"], dead.metadata["dead_letter"]["error"]) == ("test", "try 2")


def test_the_claimers_budget_is_for_messages_without(jobs: Queue[Any]) -> None:
    jobs.put("no budget")
    work = jobs.claim_work(claimer="w", max_attempts=1)
    assert work is not None
    assert work.max_attempts == 1
    work.fail("no")
    assert len(jobs.dead_letters()) == 1


def test_work_is_acknowledged_released_and_renewed(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_work(1)
    work = jobs.claim_work(claimer="w", lease_s=10.0)
    assert work is not None
    work.renew(lease_s=20.0)
    assert (work.claimer, work.key, work.expires_at) == ("w", None, START + timedelta(seconds=20))
    assert (work.release()).count == 1
    again = jobs.claim_work(claimer="w", lease_s=10.0)
    assert again is not None
    assert again.token > work.token
    with pytest.raises(ClaimLost):
        work.ack()
    again.ack()
    assert (jobs.stats()).total == 0


def test_a_queue_is_not_its_own_dead_letter_queue(jobs: Queue[Any]) -> None:
    with pytest.raises(ValueError, match="its own dead-letter queue"):
        jobs.claim_work(claimer="w", dead_letter_queue="jobs")


def test_a_body_that_ends_acknowledges(jobs: Queue[Any]) -> None:
    jobs.put({"n": 1})
    with jobs.claimed(claimer="w") as item:
        assert item == {"n": 1}
        assert (jobs.stats()).leased == 1
    assert (jobs.stats()).total == 0


def test_an_empty_queue_is_told_from_a_stored_none(jobs: Queue[Any]) -> None:
    context = jobs.claimed(claimer="w")
    with context as item:
        assert (item, context.claim) == (None, None)
    jobs.put(None)
    with context as item:
        assert item is None
        assert context.claim is not None
    assert (jobs.stats()).total == 0


def test_a_body_that_raises_gives_back_and_counts(jobs: Queue[Any]) -> None:
    jobs.put("poison", max_attempts=1)
    with pytest.raises(RuntimeError, match="broken"), jobs.claimed(claimer="w"):
        raise RuntimeError("broken")
    (dead,) = jobs.dead_letters()
    assert dead.last_error == "RuntimeError: broken"


def test_a_body_whose_error_cannot_be_shown_fails_its_message_all_the_same(jobs: Queue[Any]) -> None:
    jobs.put("work")
    with pytest.raises(UnshownError), jobs.claimed(claimer="w"):
        raise UnshownError
    (message,) = jobs.browse()
    assert (message.failures, message.last_error) == (1, "UnshownError: (its text cannot be shown)")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_body_gives_back_and_burns_nothing(jobs: Queue[Any], interruption: type[BaseException]) -> None:
    jobs.put(1, max_attempts=1)
    context = jobs.claimed(claimer="w")
    context.__enter__()
    context.__exit__(interruption, interruption(), None)
    claim = claimed_one(jobs)
    assert (claim.attempts, claim.failures) == (2, 0)


def test_a_body_may_settle_by_itself(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_many([1, 2])
    context = jobs.claimed(claimer="w", lease_s=10.0)
    with context:
        assert context.claim is not None
        context.claim.ack()
        clock.advance(60)
    with context:
        assert context.claim is not None
        jobs.release(context.claim)
    assert [message.value for message in jobs.browse()] == [2]


def test_a_context_is_for_one_message_at_a_time(jobs: Queue[Any]) -> None:
    jobs.put_many([1, 2])
    context = jobs.claimed(claimer="w")
    with context, pytest.raises(RuntimeError, match="already entered"):
        context.__enter__()
    assert jobs.length() == 1


def test_nothing_is_settled_on_request(jobs: Queue[Any]) -> None:
    jobs.put(1)
    with jobs.claimed(claimer="w", ack_on_success=False):
        pass
    assert (jobs.stats()).leased == 1
    jobs.put(2)
    with pytest.raises(RuntimeError), jobs.claimed(claimer="w", release_on_error=False):
        raise RuntimeError
    assert (jobs.stats()).leased == 2


def lose_it(jobs: Queue[Any], error: Exception | None = None) -> None:
    with jobs.claimed(claimer="w"):
        jobs.clear()
        jobs.put("other")
        if error is not None:
            raise error


def test_a_body_whose_claim_was_lost_is_not_acknowledged(jobs: Queue[Any]) -> None:
    jobs.put(1)
    with pytest.raises(ClaimLost):
        lose_it(jobs)
    assert [message.value for message in jobs.browse()] == ["other"]


def test_the_bodys_own_error_passes_with_a_note(jobs: Queue[Any]) -> None:
    jobs.put(1)
    with pytest.raises(RuntimeError, match="mine") as raised:
        lose_it(jobs, RuntimeError("mine"))
    assert "is lost" in raised.value.__notes__[0]


def test_what_does_not_fit_the_type_fails_before_the_body(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put({"no": "job"}, max_attempts=1)
    typed = Queue.from_name("jobs", type=Job, client=client)
    with pytest.raises(ValueError, match="does not fit Job"), typed.claimed(claimer="w"):
        raise AssertionError
    assert len(jobs.dead_letters()) == 1


def test_a_claim_that_does_not_fit_the_type_is_still_a_claim(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put({"no": "job"})
    claim = claimed_one(Queue.from_name("jobs", type=Job, client=client))
    with pytest.raises(ValueError, match="does not fit Job"):
        _ = claim.value
    claim.release()


def test_bad_arguments_claim_nothing(jobs: Queue[Any]) -> None:
    jobs.put(1)
    with pytest.raises(ValueError, match="lease_s"):
        jobs.claim(claimer="w", lease_s=0.0)
    with pytest.raises(ValueError, match="claimer"):
        jobs.claim(claimer="")
    with pytest.raises(ValueError, match="must be less than the lease"):
        jobs.claimed(claimer="w", lease_s=10.0, renew_interval_s=10.0)
    with pytest.raises(ValueError, match="max_hold_s"):
        jobs.claimed(claimer="w", max_hold_s=0.0)
    with pytest.raises(ValueError, match="limit"):
        jobs.claim_many(0, claimer="w")
    assert (jobs.stats()).ready == 1


def test_a_claim_has_a_twin_for_tasks(jobs: Queue[Any]) -> None:
    jobs.put(1)
    claim = claimed_one(jobs)
    assert (claim.aio.claim_id, claim.aio.hold) == (claim.claim_id, claim.hold)


def test_whoever_gives_no_name_claims_under_that_of_the_process(jobs: Queue[Any]) -> None:
    for number in range(4):
        jobs.put(number, key=number)
    claims = [jobs.claim(), *jobs.claim_many(1), jobs.take(2), jobs.claim_work()]
    assert [claim is not None and claim.claimer for claim in claims] == [this_process()] * 4
    jobs.put(4)
    with jobs.claimed() as value:
        assert value == 4
        assert (jobs.stats()).holders == {this_process(): 5}
