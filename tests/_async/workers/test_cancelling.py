"""Jobs are cancelled by their id: those that wait are removed, those that run are told."""

import asyncio
from typing import Any

import pytest

from holdfast import JobCancelled, JobContext
from holdfast._async.handles.job import AsyncJob
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner

pytestmark = pytest.mark.anyio


async def test_a_running_job_is_cancelled_by_its_id_from_anywhere(client: ControlPlaneClient) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def handle(value: int, job: JobContext) -> None:
        began.open()
        async with AsyncRunner() as runner:
            await runner.until(lambda: job.should_stop)
        job.check()

    worker = AsyncWorker(handle, "jobs", client=client, results=True)
    await worker.put(1, id="one")
    async with worker:
        await began.wait()
        job = AsyncJob("jobs", "one", client=client)
        assert await job.cancel() == "requested"
        with pytest.raises(JobCancelled):
            await job.result(timeout_s=60.0)
    gate.open()
    assert (await AsyncQueue[int]("jobs", client=client).stats()).total == 0
    assert await AsyncDict[Any]("holdfast-cancels", client=client).length() == 0
    assert await job.cancel() == "absent"


async def test_a_job_that_is_claimed_after_its_cancellation_does_not_run(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = AsyncWorker(handle, "jobs", client=client, results=True)
    queue, job = AsyncQueue[int]("jobs", client=client), await worker.put(1)
    claim = await queue.claim(claimer="another")
    assert claim is not None
    assert await job.cancel() == "requested"
    async with worker:
        shift = worker._shift
        assert shift is not None
        async with AsyncRunner() as runner:
            await runner.until(lambda: bool(shift._crews[0]._cancelled))
        await claim.release()
        with pytest.raises(JobCancelled):
            await job.result(timeout_s=60.0)
    assert (await queue.stats()).total == 0


async def test_a_job_that_waits_is_cancelled_by_removing_it(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = AsyncWorker(handle, "jobs", client=client)
    job = await worker.put(1)
    assert await job.cancel() == "cancelled"
    with pytest.raises(JobCancelled):
        await job.result()
    await worker.run(until_empty=True)
    assert worker.health.failed == 0


async def test_a_request_ends_with_its_job_however_that_ends(client: ControlPlaneClient, clock: FakeClock) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def finish(value: int, job: JobContext) -> None:
        began.open()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            return

    worker = AsyncWorker(finish, "jobs", client=client)
    await worker.put(1, id="one")
    async with worker, AsyncRunner() as runner:
        await began.wait()
        (run,) = worker._shift._crews[0].running.values()  # type: ignore[union-attr]
        assert await AsyncJob("jobs", "one", client=client).cancel() == "requested"
        await runner.until(lambda: run.job.should_stop)
        gate.open()
        await runner.until(lambda: worker.health.done == 1)
    assert await AsyncDict[Any]("holdfast-cancels", client=client).length() == 0


async def test_a_request_for_a_job_is_not_one_for_the_next_of_its_id(client: ControlPlaneClient, clock: FakeClock) -> None:
    seen: list[int] = []

    async def handle(value: int) -> None:
        seen.append(value)

    worker, queue = AsyncWorker(handle, "jobs", client=client), AsyncQueue[int]("jobs", client=client)
    await worker.put(1, id="same")
    claim = await queue.claim(claimer="no worker")
    assert claim is not None
    assert await AsyncJob("jobs", "same", client=client).cancel() == "requested"
    await queue.ack(claim)
    clock.advance(1.0)
    await worker.put(2, id="same")
    async with worker, AsyncRunner() as runner:
        await runner.until(lambda: worker.health.done == 1)
    assert seen == [2]
