# Generated from tests/_async/handles/test_together.py by tools/unasync.py; do not edit.
"""One atomic step over queues, dicts and leases."""

from typing import Any

import pytest

from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.together import Together
from holdfast.client import ControlPlaneClient
from holdfast.errors import ClaimLost, KeyInFlight, LeaseHeld, LeaseLost, QueueFull, Refused
from holdfast.results import MISSING
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import token


@pytest.fixture
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue.from_name("jobs", client=client)


@pytest.fixture
def shared(client: ControlPlaneClient) -> Dict[Any]:
    return Dict.from_name("shared", client=client)


def one_claim(jobs: Queue[Any], lease_s: float = 60.0) -> Any:
    jobs.put("work")
    claim = jobs.claim(claimer="w", lease_s=lease_s)
    assert claim is not None
    return claim


def test_everything_happens_at_once(client: ControlPlaneClient, jobs: Queue[Any], shared: Dict[Any]) -> None:
    claim = one_claim(jobs)
    with Together(client) as step:
        acked = step.ack(claim)
        first, second = step.put("next", 1, priority=3), step.put("next", 2)
        written = step.write(shared, "state", "done")
        total = step.increment(shared, "total", 5)
    assert (jobs.stats()).total == 0
    assert Queue.from_name("next", client=client).get_many(5) == [1, 2]
    assert shared.get_many(["state", "total"]) == {"state": "done", "total": 5}
    assert (acked.result.count, first.result.created, second.result.created) == (1, True, True)
    assert (written.result.updated, total.result.current_value) == (True, 5)


def test_an_error_in_the_block_commits_nothing(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    step = Together(client)
    put = step.put(jobs, 1)
    with pytest.raises(RuntimeError), step:
        raise RuntimeError
    assert jobs.length() == 0
    with pytest.raises(RuntimeError, match="not committed"):
        _ = put.result
    with pytest.raises(RuntimeError, match="is finished"):
        step.put(jobs, 1)


def test_nothing_at_all_is_fine(client: ControlPlaneClient) -> None:
    with Together(client):
        pass


def test_a_lost_claim_refuses_everything(client: ControlPlaneClient, jobs: Queue[Any], clock: FakeClock) -> None:
    claim = one_claim(jobs, lease_s=10.0)
    clock.advance(10)
    step = Together(client)
    step.ack(claim)
    step.put("next", 1)
    with pytest.raises(ClaimLost):
        step.__exit__(None, None, None)
    assert Queue.from_name("next", client=client).length() == 0


def test_a_failed_compare_refuses_everything(client: ControlPlaneClient, jobs: Queue[Any], shared: Dict[Any]) -> None:
    shared.put("config", 1)
    step = Together(client)
    step.put(jobs, 1)
    step.compare_and_set(shared, "config", 2, 3)
    with pytest.raises(Refused):
        step.__exit__(None, None, None)
    assert (jobs.length(), shared.get("config")) == (0, 1)


def test_a_failed_expectation_refuses_everything(client: ControlPlaneClient, jobs: Queue[Any], shared: Dict[Any]) -> None:
    shared.put("config", 1)
    by_value, by_revision = Together(client), Together(client)
    by_value.put(jobs, 1)
    by_value.expect(shared, "config", 2)
    by_revision.put(jobs, 1)
    by_revision.expect_revision(shared, "config", 0)
    with pytest.raises(Refused):
        by_value.__exit__(None, None, None)
    with pytest.raises(Refused):
        by_revision.__exit__(None, None, None)
    assert jobs.length() == 0


def test_a_compare_that_holds_lets_the_rest_happen(client: ControlPlaneClient, jobs: Queue[Any], shared: Dict[Any]) -> None:
    shared.put("config", 1)
    with Together(client) as step:
        step.expect(shared, "config", 1)
        step.expect(shared, "other", MISSING)
        step.compare_and_set(shared, "new", MISSING, "made")
        step.put(jobs, 1)
    assert (jobs.length(), shared.get("new")) == (1, "made")


def test_a_write_needs_the_lease_it_names(client: ControlPlaneClient, shared: Dict[Any], clock: FakeClock) -> None:
    lease = shared.acquire_lease("k", holder="w", lease_s=10.0)
    with Together(client) as step:
        step.write(shared, "k", 1, lease_id=lease.lease_id)
    clock.advance(10)
    late = Together(client)
    late.write(shared, "k", 2, lease_id=lease.lease_id)
    with pytest.raises(LeaseLost):
        late.__exit__(None, None, None)
    assert shared.get("k") == 1


def test_a_stale_fence_refuses(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    earlier, later = token(client.store), token(client.store)
    with Together(client) as step:
        step.write(shared, "k", "new", fence=later)
    stale = Together(client)
    stale.delete(shared, "k", fence=earlier)
    with pytest.raises(Refused, match="higher token"):
        stale.__exit__(None, None, None)
    assert shared.get("k") == "new"


def test_leases_change_with_the_rest(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    with Together(client) as step:
        taken = step.acquire_lease(shared, "leader", holder="a", lease_s=30.0)
        step.write(shared, "epoch", 1)
    lease_id = taken.result.lease_id
    refused = Together(client)
    refused.acquire_lease(shared, "leader", holder="b")
    with pytest.raises(LeaseHeld):
        refused.__exit__(None, None, None)
    with Together(client) as step:
        renewed = step.renew_lease(shared, "leader", lease_id=lease_id, lease_s=60.0)
    assert renewed.result.until > taken.result.until
    with Together(client) as step:
        step.delete(shared, "epoch")
        released = step.release_lease(shared, "leader", lease_id=lease_id)
    assert released.result
    assert shared.get("epoch") is None


def test_a_full_queue_or_a_rejected_key_refuses(client: ControlPlaneClient, jobs: Queue[Any], shared: Dict[Any]) -> None:
    small = Queue.create("small", maxsize=1, client=client)
    full = Together(client)
    full.write(shared, "k", 1)
    full.put(small, 1)
    full.put(small, 2)
    with pytest.raises(QueueFull):
        full.__exit__(None, None, None)
    jobs.put(1, key="k")
    rejected = Together(client)
    rejected.write(shared, "k", 1)
    rejected.put(jobs, 2, key="k", if_present="reject")
    with pytest.raises(KeyInFlight):
        rejected.__exit__(None, None, None)
    assert shared.get("k") is None


def test_settling_a_claim_twice_in_one_step_is_refused(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    claim = one_claim(jobs)
    same, different = Together(client), Together(client)
    same.ack(claim)
    same.ack(claim.claim_id)
    with pytest.raises(ValueError, match="twice"):
        same.__exit__(None, None, None)
    different.ack(claim)
    different.fail(claim, error="no")
    with pytest.raises(ValueError, match="affect"):
        different.__exit__(None, None, None)
    assert (jobs.ack(claim)).count == 1


def test_changing_a_key_twice_in_one_step_is_refused(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    step = Together(client)
    step.write(shared, "k", 1)
    step.delete(shared, "k")
    with pytest.raises(ValueError, match="twice"):
        step.__exit__(None, None, None)


def test_a_handle_of_another_store_is_refused(client: ControlPlaneClient) -> None:
    with ControlPlaneClient("memory://") as other:
        elsewhere = Queue.from_name("jobs", client=other)
        with pytest.raises(ValueError, match="another store"):
            Together(client).put(elsewhere, 1)


def test_claims_can_be_released_and_failed_in_a_step(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put_many([1, 2])
    first, second = jobs.claim_many(2, claimer="w")
    with Together(client) as step:
        step.release(first, delay_s=5.0)
        step.fail([second], error="no")
    assert [(message.value, message.failures) for message in jobs.browse()] == [(2, 1), (1, 0)]


def test_a_step_inside_a_claimed_body_settles_it(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put("work")
    context = jobs.claimed(claimer="w")
    with context as item:
        assert context.claim is not None
        with Together(client) as step:
            step.ack(context.claim)
            step.put("next", item)
    assert (jobs.stats()).total == 0
    assert Queue.from_name("next", client=client).get() == "work"


def test_work_is_completed_with_what_follows_from_it(client: ControlPlaneClient, jobs: Queue[Any], shared: Dict[Any]) -> None:
    jobs.put_work({"image": 1})
    work = jobs.claim_work(claimer="w")
    assert work is not None
    following = Queue.from_name("next", client=client)
    work.complete({"size": 3}, puts={following: ["a", "b"], "audit": [work.id]}, writes={shared: {"state": "done"}})
    assert (jobs.stats()).total == 0
    assert following.get_many(5) == ["a", "b"]
    assert Queue.from_name("audit", client=client).get() == work.id
    assert shared.get("state") == "done"
    assert Dict.from_name("jobs-results", client=client).get(work.id) == {"size": 3}


def test_a_lost_work_item_completes_nothing(client: ControlPlaneClient, jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put_work(1)
    work = jobs.claim_work(claimer="w", lease_s=10.0)
    assert work is not None
    clock.advance(10)
    with pytest.raises(ClaimLost):
        work.complete("result", puts={"next": [1]})
    assert Queue.from_name("next", client=client).length() == 0
    assert Dict.from_name("jobs-results", client=client).get(work.id) is None
