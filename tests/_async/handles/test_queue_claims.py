"""Claims, work items and the `with` of a worker."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast._async.handles.queue import AsyncQueue
from holdfast.client import ControlPlaneClient
from holdfast.errors import ClaimLost
from holdfast.holding.hold import this_process
from holdfast.results import QueueResponse
from holdfast.testing.clock import START_US, FakeClock

pytestmark = pytest.mark.anyio

START = datetime.fromtimestamp(START_US / 1_000_000, UTC)


class Job(msgspec.Struct):
    name: str


class UnshownError(Exception):
    def __str__(self) -> str:
        raise LookupError


@pytest.fixture
def jobs(client: ControlPlaneClient) -> AsyncQueue[Any]:
    return AsyncQueue.from_name("jobs", client=client)


async def claimed_one(jobs: AsyncQueue[Any], **options: Any) -> Any:
    claim = await jobs.claim(claimer="worker-a", **options)
    assert claim is not None
    return claim


async def test_a_claim_shows_what_it_holds(jobs: AsyncQueue[Any]) -> None:
    put_id = await jobs.put({"n": 1}, key=("k", 1), metadata={"trace": "x"}, max_attempts=4)
    claim = await claimed_one(jobs, lease_s=30.0)
    assert (claim.value, claim.id, claim.queue, claim.claimer) == ({"n": 1}, put_id, "jobs", "worker-a")
    assert (claim.attempts, claim.failures, claim.max_attempts, claim.last_error) == (1, 0, 4, None)
    assert (claim.key, claim.metadata) == (("k", 1), {"trace": "x"})
    assert (claim.created_at, claim.expires_at) == (START, START + timedelta(seconds=30))
    assert not claim.lost
    claim.check()


async def test_an_empty_queue_has_no_claim(jobs: AsyncQueue[Any]) -> None:
    assert await jobs.claim(claimer="w") is None
    assert await jobs.claim_work(claimer="w", timeout_s=0.001) is None
    assert await jobs.claim_many(3, claimer="w") == []
    assert await jobs.take("k", claimer="w") is None


async def test_a_later_claim_has_a_larger_token(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    first = await claimed_one(jobs)
    await first.release()
    assert (await claimed_one(jobs)).token > first.token


async def test_an_acknowledged_message_is_gone(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs)
    assert await jobs.ack([claim]) == QueueResponse(1)
    assert (await jobs.stats()).total == 0


async def test_claims_are_named_by_themselves_or_by_id(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many([1, 2, 3])
    first, second, third = await jobs.claim_many(5, claimer="w")
    assert (await jobs.ack(first)).count == 1
    assert (await jobs.ack(second.claim_id)).count == 1
    assert (await jobs.ack(iter([third.claim_id]))).count == 1
    assert (await jobs.ack([])).count == 0


async def test_a_claim_that_is_named_twice_counts_once(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs)
    assert await jobs.ack([claim, claim, claim.claim_id]) == QueueResponse(1)


async def test_failing_by_the_queue_takes_a_budget_for_those_without(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    await jobs.fail(await claimed_one(jobs), error="no", max_attempts=1, dead_letter_queue="dead")
    assert await AsyncQueue.from_name("dead", client=client).get() == 1


async def test_a_claim_of_another_queue_is_refused(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs)
    with pytest.raises(ValueError, match="queue 'jobs', not to 'other'"):
        await AsyncQueue.from_name("other", client=client).ack(claim)
    with pytest.raises(ValueError, match="not a claim id"):
        await jobs.ack("nonsense")


async def test_an_ended_claim_is_lost_and_its_ack_refused(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_many([1, 2])
    stale, fresh = await claimed_one(jobs, lease_s=10.0), await claimed_one(jobs, lease_s=60.0)
    clock.advance(10)
    assert stale.lost
    with pytest.raises(ClaimLost):
        stale.check()
    with pytest.raises(ClaimLost) as lost:
        await jobs.ack([stale, fresh])
    assert [receipt.claim_id for receipt in lost.value.lost] == [stale.claim_id]
    assert (await jobs.stats()).total == 1


async def test_counts_instead_of_an_error(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs, lease_s=10.0)
    clock.advance(10)
    assert await jobs.ack(claim, strict=False) == QueueResponse(0, 1, (claim.claim_id,))
    assert await jobs.renew(claim, lease_s=5.0, strict=False) == QueueResponse(0, 1, (claim.claim_id,))
    with pytest.raises(ClaimLost):
        await jobs.renew(claim, lease_s=5.0)


async def test_releasing_or_failing_what_was_lost_raises_nothing(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs, lease_s=10.0)
    clock.advance(10)
    assert (await jobs.release(claim)).lost == 1
    assert (await jobs.fail(claim)).lost == 1
    assert (await jobs.bury(claim)).lost == 1
    assert (await claim.release()).lost == 1
    assert (await claim.fail()).lost == 1


async def test_a_renewed_claim_lives_on(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs, lease_s=10.0)
    clock.advance(5)
    assert (await jobs.renew([claim], lease_s=120.0)).count == 1
    assert claim.expires_at == START + timedelta(seconds=125)
    clock.advance(100)
    assert not claim.lost
    await claim.renew(lease_s=60.0)
    await claim.ack()


async def test_a_released_message_goes_to_the_back_or_where_it_is_sent(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_many([1, 2])
    clock.advance(1)
    await jobs.release(await claimed_one(jobs))
    assert (await claimed_one(jobs)).value == 2
    clock.advance(1)
    claim = await claimed_one(jobs)
    await jobs.put(3)
    await claim.release(return_to="front", delay_s=0.0)
    assert (await claimed_one(jobs)).value == 1


async def test_a_release_burns_no_attempt_and_can_wait(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put(1, max_attempts=1)
    await (await claimed_one(jobs)).release(delay_s=5.0)
    assert await jobs.claim(claimer="w") is None
    clock.advance(5)
    again = await claimed_one(jobs)
    assert (again.attempts, again.failures) == (2, 0)


async def test_the_budget_ends_in_the_dead_letters(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("poison", max_attempts=2)
    await jobs.fail(await claimed_one(jobs), error="first")
    again = await claimed_one(jobs)
    assert (again.failures, again.last_error) == (1, "first")
    await again.fail(error="second")
    (dead,) = await jobs.dead_letters()
    assert (dead.value, dead.state, dead.failures, dead.last_error) == ("poison", "dead", 2, "second")


async def test_a_buried_message_is_dead_at_once(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1, max_attempts=9)
    await jobs.bury(await claimed_one(jobs), error="hopeless")
    assert [message.last_error for message in await jobs.dead_letters()] == ["hopeless"]


async def test_a_key_is_taken_out_of_turn(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("a", key="a")
    await jobs.put("b", key="b")
    claim = await jobs.take("b", claimer="w")
    assert claim is not None
    assert (claim.value, claim.key) == ("b", "b")
    assert await jobs.take("b", claimer="w") is None


async def test_work_is_tried_again_until_its_budget_is_spent(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put_work({"image_id": "img-42"}, max_attempts=2, dead_letter_queue="dead", metadata={"by": "test"})
    for attempt in (1, 2):
        work = await jobs.claim_work(claimer="w")
        assert work is not None
        assert (work.payload, work.attempts, work.max_attempts, work.metadata) == ({"image_id": "img-42"}, attempt, 2, {"by": "test"})
        assert (await work.fail(error=f"try {attempt}")).count == 1
    assert await jobs.claim_work(claimer="w") is None
    (dead,) = await AsyncQueue.from_name("dead", client=client).browse()
    assert dead.value == {"image_id": "img-42"}
    assert dead.metadata is not None
    assert (dead.metadata["by"], dead.metadata["dead_letter"]["error"]) == ("test", "try 2")


async def test_the_claimers_budget_is_for_messages_without(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("no budget")
    work = await jobs.claim_work(claimer="w", max_attempts=1)
    assert work is not None
    assert work.max_attempts == 1
    await work.fail("no")
    assert len(await jobs.dead_letters()) == 1


async def test_work_is_acknowledged_released_and_renewed(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_work(1)
    work = await jobs.claim_work(claimer="w", lease_s=10.0)
    assert work is not None
    await work.renew(lease_s=20.0)
    assert (work.claimer, work.key, work.expires_at) == ("w", None, START + timedelta(seconds=20))
    assert (await work.release()).count == 1
    again = await jobs.claim_work(claimer="w", lease_s=10.0)
    assert again is not None
    assert again.token > work.token
    with pytest.raises(ClaimLost):
        await work.ack()
    await again.ack()
    assert (await jobs.stats()).total == 0


async def test_a_queue_is_not_its_own_dead_letter_queue(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(ValueError, match="its own dead-letter queue"):
        await jobs.claim_work(claimer="w", dead_letter_queue="jobs")


async def test_a_body_that_ends_acknowledges(jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"n": 1})
    async with jobs.claimed(claimer="w") as item:
        assert item == {"n": 1}
        assert (await jobs.stats()).leased == 1
    assert (await jobs.stats()).total == 0


async def test_an_empty_queue_is_told_from_a_stored_none(jobs: AsyncQueue[Any]) -> None:
    context = jobs.claimed(claimer="w")
    async with context as item:
        assert (item, context.claim) == (None, None)
    await jobs.put(None)
    async with context as item:
        assert item is None
        assert context.claim is not None
    assert (await jobs.stats()).total == 0


async def test_a_body_that_raises_gives_back_and_counts(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("poison", max_attempts=1)
    with pytest.raises(RuntimeError, match="broken"):
        async with jobs.claimed(claimer="w"):
            raise RuntimeError("broken")
    (dead,) = await jobs.dead_letters()
    assert dead.last_error == "RuntimeError: broken"


async def test_a_body_whose_error_cannot_be_shown_fails_its_message_all_the_same(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("work")
    with pytest.raises(UnshownError):
        async with jobs.claimed(claimer="w"):
            raise UnshownError
    (message,) = await jobs.browse()
    assert (message.failures, message.last_error) == (1, "UnshownError: (its text cannot be shown)")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
async def test_an_interrupted_body_gives_back_and_burns_nothing(jobs: AsyncQueue[Any], interruption: type[BaseException]) -> None:
    await jobs.put(1, max_attempts=1)
    context = jobs.claimed(claimer="w")
    await context.__aenter__()
    await context.__aexit__(interruption, interruption(), None)
    claim = await claimed_one(jobs)
    assert (claim.attempts, claim.failures) == (2, 0)


async def test_a_body_may_settle_by_itself(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_many([1, 2])
    context = jobs.claimed(claimer="w", lease_s=10.0)
    async with context:
        assert context.claim is not None
        await context.claim.ack()
        clock.advance(60)
    async with context:
        assert context.claim is not None
        await jobs.release(context.claim)
    assert [message.value for message in await jobs.browse()] == [2]


async def test_a_context_is_for_one_message_at_a_time(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many([1, 2])
    context = jobs.claimed(claimer="w")
    async with context:
        with pytest.raises(RuntimeError, match="already entered"):
            await context.__aenter__()
    assert await jobs.length() == 1


async def test_nothing_is_settled_on_request(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    async with jobs.claimed(claimer="w", ack_on_success=False):
        pass
    assert (await jobs.stats()).leased == 1
    await jobs.put(2)
    with pytest.raises(RuntimeError):
        async with jobs.claimed(claimer="w", release_on_error=False):
            raise RuntimeError
    assert (await jobs.stats()).leased == 2


async def lose_it(jobs: AsyncQueue[Any], error: Exception | None = None) -> None:
    async with jobs.claimed(claimer="w"):
        await jobs.clear()
        await jobs.put("other")
        if error is not None:
            raise error


async def test_a_body_whose_claim_was_lost_is_not_acknowledged(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    with pytest.raises(ClaimLost):
        await lose_it(jobs)
    assert [message.value for message in await jobs.browse()] == ["other"]


async def test_the_bodys_own_error_passes_with_a_note(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    with pytest.raises(RuntimeError, match="mine") as raised:
        await lose_it(jobs, RuntimeError("mine"))
    assert "is lost" in raised.value.__notes__[0]


async def test_what_does_not_fit_the_type_fails_before_the_body(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"no": "job"}, max_attempts=1)
    typed = AsyncQueue.from_name("jobs", type=Job, client=client)
    with pytest.raises(ValueError, match="does not fit Job"):
        async with typed.claimed(claimer="w"):
            raise AssertionError
    assert len(await jobs.dead_letters()) == 1


async def test_a_claim_that_does_not_fit_the_type_is_still_a_claim(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"no": "job"})
    claim = await claimed_one(AsyncQueue.from_name("jobs", type=Job, client=client))
    with pytest.raises(ValueError, match="does not fit Job"):
        _ = claim.value
    await claim.release()


async def test_bad_arguments_claim_nothing(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    with pytest.raises(ValueError, match="lease_s"):
        await jobs.claim(claimer="w", lease_s=0.0)
    with pytest.raises(ValueError, match="claimer"):
        await jobs.claim(claimer="")
    with pytest.raises(ValueError, match="must be less than the lease"):
        jobs.claimed(claimer="w", lease_s=10.0, renew_interval_s=10.0)
    with pytest.raises(ValueError, match="max_hold_s"):
        jobs.claimed(claimer="w", max_hold_s=0.0)
    with pytest.raises(ValueError, match="limit"):
        await jobs.claim_many(0, claimer="w")
    assert (await jobs.stats()).ready == 1


async def test_a_claim_has_a_twin_for_tasks(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    claim = await claimed_one(jobs)
    assert (claim.aio.claim_id, claim.aio.hold) == (claim.claim_id, claim.hold)


async def test_whoever_gives_no_name_claims_under_that_of_the_process(jobs: AsyncQueue[Any]) -> None:
    for number in range(4):
        await jobs.put(number, key=number)
    claims = [await jobs.claim(), *await jobs.claim_many(1), await jobs.take(2), await jobs.claim_work()]
    assert [claim is not None and claim.claimer for claim in claims] == [this_process()] * 4
    await jobs.put(4)
    async with jobs.claimed() as value:
        assert value == 4
        assert (await jobs.stats()).holders == {this_process(): 5}
