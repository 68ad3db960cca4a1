"""A worker keeps to the settings of its queue: budget, lease, back-off, limits, rates, strict groups, throttles."""

from typing import Any

import pytest

from holdfast import Backoff, JobContext, Rate, Throttle
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner

pytestmark = pytest.mark.anyio


def is_at_rest(worker: AsyncWorker[Any, Any, Any], running: int = 0) -> bool:
    """Whether it waits, with so many jobs and nothing left to settle."""
    shift = worker._shift
    assert shift is not None
    crew = shift._crews[0]
    return len(crew.running) == running and crew.desk.is_empty and not shift._queues[0]._unsettled and crew.bell._mark is not None


async def test_a_worker_that_says_nothing_takes_the_budget_of_the_queue(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise ValueError("broken")

    queue = AsyncQueue[int]("jobs", client=client)
    await queue.configure(max_attempts=1, dead_letter_queue="dead-jobs", keep_done_s=60.0)
    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put(1)
    await worker.run(until_empty=True, signals=False)
    (dead,) = await AsyncQueue[int]("dead-jobs", client=client).browse()
    assert dead.metadata is not None
    assert dead.metadata["dead_letter"]["error"] == "ValueError: broken"


async def test_a_worker_that_says_how_often_is_believed(client: ControlPlaneClient) -> None:
    tries: list[int] = []

    async def handle(value: int) -> None:
        tries.append(value)
        raise ValueError("broken")

    await AsyncQueue[int]("jobs", client=client).configure(max_attempts=1)
    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=2, backoff=Backoff(0.0, jitter=0.0))
    await worker.put(1)
    await worker.run(until_empty=True, signals=False)
    assert tries == [1, 1]


async def test_a_job_that_throttles_stops_the_queue_for_all_workers(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    async def handle(value: int, job: JobContext) -> None:
        calls.append(value)
        if len(calls) == 1:
            raise Throttle(30.0, "429 Too Many Requests")

    worker = AsyncWorker(handle, "jobs", client=client, lease_s=9999.0)
    other = AsyncWorker(handle, "jobs", client=client, lease_s=9999.0, name="other")
    queue = AsyncQueue[int]("jobs", client=client)
    await queue.put_many([1, 2])
    async with worker, AsyncRunner() as runner:
        await runner.until(lambda: bool(calls) and is_at_rest(worker))
        async with other:
            assert (await queue.explain((await queue.browse())[0])).reason == "throttled"
            assert calls == [1]
            clock.advance(31.0)
            await runner.until(lambda: worker.health.done + other.health.done == 2)
    assert sorted(calls) == [1, 1, 2]
    assert worker.health.failed == 0


async def test_a_job_may_throttle_its_group_alone(client: ControlPlaneClient) -> None:
    calls: list[str] = []

    async def handle(value: str, job: JobContext) -> None:
        calls.append(value)
        if value == "a":
            raise Throttle(30.0, group=True)

    queue = AsyncQueue[str]("jobs", client=client)
    await queue.configure(groups="fair")
    await queue.put_many(["a", "a"], group="a")
    await queue.put_many(["b", "b"], group="b")
    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.run(until_empty=True, signals=False)
    assert sorted(calls) == ["a", "b", "b"]


async def test_a_worker_under_a_limit_claims_nothing_ahead(client: ControlPlaneClient) -> None:
    gate, began = AsyncGate(), AsyncGate()

    async def handle(value: int) -> None:
        began.open()
        await gate.wait()

    queue = AsyncQueue[int]("jobs", client=client)
    await queue.configure(limit=10)
    await queue.put_many(range(20))
    worker = AsyncWorker(handle, "jobs", client=client, prefetch=5, lease_s=9999.0)
    async with worker, AsyncRunner() as runner:
        await began.wait()
        await runner.until(lambda: is_at_rest(worker, 1))
        assert (await queue.stats()).leased == 1
        gate.open()
        await runner.until(lambda: worker.health.done >= 3)


async def test_what_a_worker_gives_back_unbegun_is_given_back_to_the_rate(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        gate.open()
        await hold.wait()

    gate, hold = AsyncGate(), AsyncGate()
    queue = AsyncQueue[int]("jobs", client=client)
    await queue.configure(rate=Rate(1, per_s=3600.0, burst=3))
    await queue.put_many(range(3))
    worker = AsyncWorker(handle, "jobs", client=client, prefetch=2, lease_s=9999.0)
    async with worker, AsyncRunner() as runner:
        await gate.wait()
        await runner.until(lambda: is_at_rest(worker, 1))
        assert len(await queue.claim_many(3)) == 2, "the two that did not begin used nothing of the rate"
        hold.open()


async def test_a_strict_group_goes_through_one_step_for_each_message(client: ControlPlaneClient) -> None:
    seen: list[int] = []

    async def handle(value: int) -> None:
        seen.append(value)

    queue = AsyncQueue[int]("jobs", client=client)
    await queue.configure(groups="strict")
    await queue.put_many(range(50), group="a")
    worker = AsyncWorker(handle, "jobs", client=client, concurrency=8)
    await worker.run(until_empty=True, signals=False)
    assert seen == list(range(50))


async def test_the_queue_that_keeps_what_is_done_keeps_where_it_failed(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise ValueError("broken")

    queue = AsyncQueue[int]("jobs", client=client)
    await queue.configure(keep_done_s=60.0)
    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=1)
    await worker.put(1)
    await worker.run(until_empty=True, signals=False)
    (dead,) = await queue.dead_letters()
    assert dead.trace is not None
    assert 'raise ValueError("broken")' in dead.trace
    assert "holdfast/workers" not in dead.trace.splitlines()[1]
