# Generated from tests/_async/workers/test_policies.py by tools/unasync.py; do not edit.
"""A worker keeps to the settings of its queue: budget, lease, back-off, limits, rates, strict groups, throttles."""

from typing import Any

from holdfast import Backoff, JobContext, Rate, Throttle
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import Gate, Runner


def is_at_rest(worker: Worker[Any, Any, Any], running: int = 0) -> bool:
    """Whether it waits, with so many jobs and nothing left to settle."""
    shift = worker._shift
    assert shift is not None
    crew = shift._crews[0]
    return len(crew.running) == running and crew.desk.is_empty and not shift._queues[0]._unsettled and crew.bell._mark is not None


def test_a_worker_that_says_nothing_takes_the_budget_of_the_queue(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        raise ValueError("broken")

    queue = Queue[int]("jobs", client=client)
    queue.configure(max_attempts=1, dead_letter_queue="dead-jobs", keep_done_s=60.0)
    worker = Worker(handle, "jobs", client=client)
    worker.put(1)
    worker.run(until_empty=True, signals=False)
    (dead,) = Queue[int]("dead-jobs", client=client).browse()
    assert dead.metadata is not None
    assert dead.metadata["dead_letter"]["error"] == "ValueError: broken"


def test_a_worker_that_says_how_often_is_believed(client: ControlPlaneClient) -> None:
    tries: list[int] = []

    def handle(value: int) -> None:
        tries.append(value)
        raise ValueError("broken")

    Queue[int]("jobs", client=client).configure(max_attempts=1)
    worker = Worker(handle, "jobs", client=client, max_attempts=2, backoff=Backoff(0.0, jitter=0.0))
    worker.put(1)
    worker.run(until_empty=True, signals=False)
    assert tries == [1, 1]


def test_a_job_that_throttles_stops_the_queue_for_all_workers(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    def handle(value: int, job: JobContext) -> None:
        calls.append(value)
        if len(calls) == 1:
            raise Throttle(30.0, "429 Too Many Requests")

    worker = Worker(handle, "jobs", client=client, lease_s=9999.0)
    other = Worker(handle, "jobs", client=client, lease_s=9999.0, name="other")
    queue = Queue[int]("jobs", client=client)
    queue.put_many([1, 2])
    with worker, Runner() as runner:
        runner.until(lambda: bool(calls) and is_at_rest(worker))
        with other:
            assert (queue.explain((queue.browse())[0])).reason == "throttled"
            assert calls == [1]
            clock.advance(31.0)
            runner.until(lambda: worker.health.done + other.health.done == 2)
    assert sorted(calls) == [1, 1, 2]
    assert worker.health.failed == 0


def test_a_job_may_throttle_its_group_alone(client: ControlPlaneClient) -> None:
    calls: list[str] = []

    def handle(value: str, job: JobContext) -> None:
        calls.append(value)
        if value == "a":
            raise Throttle(30.0, group=True)

    queue = Queue[str]("jobs", client=client)
    queue.configure(groups="fair")
    queue.put_many(["a", "a"], group="a")
    queue.put_many(["b", "b"], group="b")
    worker = Worker(handle, "jobs", client=client)
    worker.run(until_empty=True, signals=False)
    assert sorted(calls) == ["a", "b", "b"]


def test_a_worker_under_a_limit_claims_nothing_ahead(client: ControlPlaneClient) -> None:
    gate, began = Gate(), Gate()

    def handle(value: int) -> None:
        began.open()
        gate.wait()

    queue = Queue[int]("jobs", client=client)
    queue.configure(limit=10)
    queue.put_many(range(20))
    worker = Worker(handle, "jobs", client=client, prefetch=5, lease_s=9999.0)
    with worker, Runner() as runner:
        began.wait()
        runner.until(lambda: is_at_rest(worker, 1))
        assert (queue.stats()).leased == 1
        gate.open()
        runner.until(lambda: worker.health.done >= 3)


def test_what_a_worker_gives_back_unbegun_is_given_back_to_the_rate(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        gate.open()
        hold.wait()

    gate, hold = Gate(), Gate()
    queue = Queue[int]("jobs", client=client)
    queue.configure(rate=Rate(1, per_s=3600.0, burst=3))
    queue.put_many(range(3))
    worker = Worker(handle, "jobs", client=client, prefetch=2, lease_s=9999.0)
    with worker, Runner() as runner:
        gate.wait()
        runner.until(lambda: is_at_rest(worker, 1))
        assert len(queue.claim_many(3)) == 2, "the two that did not begin used nothing of the rate"
        hold.open()


def test_a_strict_group_goes_through_one_step_for_each_message(client: ControlPlaneClient) -> None:
    seen: list[int] = []

    def handle(value: int) -> None:
        seen.append(value)

    queue = Queue[int]("jobs", client=client)
    queue.configure(groups="strict")
    queue.put_many(range(50), group="a")
    worker = Worker(handle, "jobs", client=client, concurrency=8)
    worker.run(until_empty=True, signals=False)
    assert seen == list(range(50))


def test_the_queue_that_keeps_what_is_done_keeps_where_it_failed(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        raise ValueError("broken")

    queue = Queue[int]("jobs", client=client)
    queue.configure(keep_done_s=60.0)
    worker = Worker(handle, "jobs", client=client, max_attempts=1)
    worker.put(1)
    worker.run(until_empty=True, signals=False)
    (dead,) = queue.dead_letters()
    assert dead.trace is not None
    assert 'raise ValueError("broken")' in dead.trace
    assert "holdfast/workers" not in dead.trace.splitlines()[1]
