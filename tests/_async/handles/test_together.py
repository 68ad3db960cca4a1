"""One atomic step over queues, dicts and leases."""

from typing import Any

import pytest

from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.together import AsyncTogether
from holdfast.client import ControlPlaneClient
from holdfast.errors import ClaimLost, KeyInFlight, LeaseHeld, LeaseLost, QueueFull, Refused
from holdfast.results import MISSING
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import token

pytestmark = pytest.mark.anyio


@pytest.fixture
def jobs(client: ControlPlaneClient) -> AsyncQueue[Any]:
    return AsyncQueue.from_name("jobs", client=client)


@pytest.fixture
def shared(client: ControlPlaneClient) -> AsyncDict[Any]:
    return AsyncDict.from_name("shared", client=client)


async def one_claim(jobs: AsyncQueue[Any], lease_s: float = 60.0) -> Any:
    await jobs.put("work")
    claim = await jobs.claim(claimer="w", lease_s=lease_s)
    assert claim is not None
    return claim


async def test_everything_happens_at_once(client: ControlPlaneClient, jobs: AsyncQueue[Any], shared: AsyncDict[Any]) -> None:
    claim = await one_claim(jobs)
    async with AsyncTogether(client) as step:
        acked = step.ack(claim)
        first, second = step.put("next", 1, priority=3), step.put("next", 2)
        written = step.write(shared, "state", "done")
        total = step.increment(shared, "total", 5)
    assert (await jobs.stats()).total == 0
    assert await AsyncQueue.from_name("next", client=client).get_many(5) == [1, 2]
    assert await shared.get_many(["state", "total"]) == {"state": "done", "total": 5}
    assert (acked.result.count, first.result.created, second.result.created) == (1, True, True)
    assert (written.result.updated, total.result.current_value) == (True, 5)


async def test_an_error_in_the_block_commits_nothing(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    step = AsyncTogether(client)
    put = step.put(jobs, 1)
    with pytest.raises(RuntimeError):
        async with step:
            raise RuntimeError
    assert await jobs.length() == 0
    with pytest.raises(RuntimeError, match="not committed"):
        _ = put.result
    with pytest.raises(RuntimeError, match="is finished"):
        step.put(jobs, 1)


async def test_nothing_at_all_is_fine(client: ControlPlaneClient) -> None:
    async with AsyncTogether(client):
        pass


async def test_a_lost_claim_refuses_everything(client: ControlPlaneClient, jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    claim = await one_claim(jobs, lease_s=10.0)
    clock.advance(10)
    step = AsyncTogether(client)
    step.ack(claim)
    step.put("next", 1)
    with pytest.raises(ClaimLost):
        await step.__aexit__(None, None, None)
    assert await AsyncQueue.from_name("next", client=client).length() == 0


async def test_a_failed_compare_refuses_everything(client: ControlPlaneClient, jobs: AsyncQueue[Any], shared: AsyncDict[Any]) -> None:
    await shared.put("config", 1)
    step = AsyncTogether(client)
    step.put(jobs, 1)
    step.compare_and_set(shared, "config", 2, 3)
    with pytest.raises(Refused):
        await step.__aexit__(None, None, None)
    assert (await jobs.length(), await shared.get("config")) == (0, 1)


async def test_a_failed_expectation_refuses_everything(client: ControlPlaneClient, jobs: AsyncQueue[Any], shared: AsyncDict[Any]) -> None:
    await shared.put("config", 1)
    by_value, by_revision = AsyncTogether(client), AsyncTogether(client)
    by_value.put(jobs, 1)
    by_value.expect(shared, "config", 2)
    by_revision.put(jobs, 1)
    by_revision.expect_revision(shared, "config", 0)
    with pytest.raises(Refused):
        await by_value.__aexit__(None, None, None)
    with pytest.raises(Refused):
        await by_revision.__aexit__(None, None, None)
    assert await jobs.length() == 0


async def test_a_compare_that_holds_lets_the_rest_happen(client: ControlPlaneClient, jobs: AsyncQueue[Any], shared: AsyncDict[Any]) -> None:
    await shared.put("config", 1)
    async with AsyncTogether(client) as step:
        step.expect(shared, "config", 1)
        step.expect(shared, "other", MISSING)
        step.compare_and_set(shared, "new", MISSING, "made")
        step.put(jobs, 1)
    assert (await jobs.length(), await shared.get("new")) == (1, "made")


async def test_a_write_needs_the_lease_it_names(client: ControlPlaneClient, shared: AsyncDict[Any], clock: FakeClock) -> None:
    lease = await shared.acquire_lease("k", holder="w", lease_s=10.0)
    async with AsyncTogether(client) as step:
        step.write(shared, "k", 1, lease_id=lease.lease_id)
    clock.advance(10)
    late = AsyncTogether(client)
    late.write(shared, "k", 2, lease_id=lease.lease_id)
    with pytest.raises(LeaseLost):
        await late.__aexit__(None, None, None)
    assert await shared.get("k") == 1


async def test_a_stale_fence_refuses(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    earlier, later = token(client.store), token(client.store)
    async with AsyncTogether(client) as step:
        step.write(shared, "k", "new", fence=later)
    stale = AsyncTogether(client)
    stale.delete(shared, "k", fence=earlier)
    with pytest.raises(Refused, match="higher token"):
        await stale.__aexit__(None, None, None)
    assert await shared.get("k") == "new"


async def test_leases_change_with_the_rest(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    async with AsyncTogether(client) as step:
        taken = step.acquire_lease(shared, "leader", holder="a", lease_s=30.0)
        step.write(shared, "epoch", 1)
    lease_id = taken.result.lease_id
    refused = AsyncTogether(client)
    refused.acquire_lease(shared, "leader", holder="b")
    with pytest.raises(LeaseHeld):
        await refused.__aexit__(None, None, None)
    async with AsyncTogether(client) as step:
        renewed = step.renew_lease(shared, "leader", lease_id=lease_id, lease_s=60.0)
    assert renewed.result.until > taken.result.until
    async with AsyncTogether(client) as step:
        step.delete(shared, "epoch")
        released = step.release_lease(shared, "leader", lease_id=lease_id)
    assert released.result
    assert await shared.get("epoch") is None


async def test_a_full_queue_or_a_rejected_key_refuses(client: ControlPlaneClient, jobs: AsyncQueue[Any], shared: AsyncDict[Any]) -> None:
    small = await AsyncQueue.create("small", maxsize=1, client=client)
    full = AsyncTogether(client)
    full.write(shared, "k", 1)
    full.put(small, 1)
    full.put(small, 2)
    with pytest.raises(QueueFull):
        await full.__aexit__(None, None, None)
    await jobs.put(1, key="k")
    rejected = AsyncTogether(client)
    rejected.write(shared, "k", 1)
    rejected.put(jobs, 2, key="k", if_present="reject")
    with pytest.raises(KeyInFlight):
        await rejected.__aexit__(None, None, None)
    assert await shared.get("k") is None


async def test_settling_a_claim_twice_in_one_step_is_refused(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    claim = await one_claim(jobs)
    same, different = AsyncTogether(client), AsyncTogether(client)
    same.ack(claim)
    same.ack(claim.claim_id)
    with pytest.raises(ValueError, match="twice"):
        await same.__aexit__(None, None, None)
    different.ack(claim)
    different.fail(claim, error="no")
    with pytest.raises(ValueError, match="affect"):
        await different.__aexit__(None, None, None)
    assert (await jobs.ack(claim)).count == 1


async def test_changing_a_key_twice_in_one_step_is_refused(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    step = AsyncTogether(client)
    step.write(shared, "k", 1)
    step.delete(shared, "k")
    with pytest.raises(ValueError, match="twice"):
        await step.__aexit__(None, None, None)


async def test_a_handle_of_another_store_is_refused(client: ControlPlaneClient) -> None:
    async with ControlPlaneClient("memory://") as other:
        elsewhere = AsyncQueue.from_name("jobs", client=other)
        with pytest.raises(ValueError, match="another store"):
            AsyncTogether(client).put(elsewhere, 1)


async def test_claims_can_be_released_and_failed_in_a_step(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many([1, 2])
    first, second = await jobs.claim_many(2, claimer="w")
    async with AsyncTogether(client) as step:
        step.release(first, delay_s=5.0)
        step.fail([second], error="no")
    assert [(message.value, message.failures) for message in await jobs.browse()] == [(2, 1), (1, 0)]


async def test_a_step_inside_a_claimed_body_settles_it(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put("work")
    context = jobs.claimed(claimer="w")
    async with context as item:
        assert context.claim is not None
        async with AsyncTogether(client) as step:
            step.ack(context.claim)
            step.put("next", item)
    assert (await jobs.stats()).total == 0
    assert await AsyncQueue.from_name("next", client=client).get() == "work"


async def test_work_is_completed_with_what_follows_from_it(
    client: ControlPlaneClient, jobs: AsyncQueue[Any], shared: AsyncDict[Any]
) -> None:
    await jobs.put_work({"image": 1})
    work = await jobs.claim_work(claimer="w")
    assert work is not None
    following = AsyncQueue.from_name("next", client=client)
    await work.complete({"size": 3}, puts={following: ["a", "b"], "audit": [work.id]}, writes={shared: {"state": "done"}})
    assert (await jobs.stats()).total == 0
    assert await following.get_many(5) == ["a", "b"]
    assert await AsyncQueue.from_name("audit", client=client).get() == work.id
    assert await shared.get("state") == "done"
    assert await AsyncDict.from_name("jobs-results", client=client).get(work.id) == {"size": 3}


async def test_a_lost_work_item_completes_nothing(client: ControlPlaneClient, jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put_work(1)
    work = await jobs.claim_work(claimer="w", lease_s=10.0)
    assert work is not None
    clock.advance(10)
    with pytest.raises(ClaimLost):
        await work.complete("result", puts={"next": [1]})
    assert await AsyncQueue.from_name("next", client=client).length() == 0
    assert await AsyncDict.from_name("jobs-results", client=client).get(work.id) is None
