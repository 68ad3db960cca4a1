"""How long jobs may run, and hold on to their messages."""

import asyncio
import logging
from typing import Any

import pytest

from holdfast import JobContext
from holdfast._async.handles.once import AsyncOnce
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio


async def test_a_soft_limit_tells_the_job_and_counts_as_a_failure(client: ControlPlaneClient, clock: FakeClock) -> None:
    began = AsyncGate()

    async def handle(value: int, job: JobContext) -> None:
        began.open()
        async with AsyncRunner() as runner:
            await runner.until(lambda: job.should_stop)
        job.check()

    worker = AsyncWorker(handle, "jobs", client=client, soft_limit_s=30.0, max_attempts=1)
    await worker.put(1)
    async with worker, AsyncRunner() as runner:
        await began.wait()
        clock.advance(29.0)
        clock.advance(2.0)
        await runner.until(lambda: worker.health.failed == 1)
    (letter,) = await AsyncQueue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")


async def test_a_handler_of_ten_leases_keeps_its_message(client: ControlPlaneClient, clock: FakeClock) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def handle(value: int) -> None:
        began.open()
        await gate.wait()

    worker = AsyncWorker(handle, "jobs", client=client, lease_s=30.0)
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put(1)
    async with worker, AsyncRunner() as runner:
        await began.wait()
        (run,) = worker._shift._crews[0].running.values()  # type: ignore[union-attr]
        for _ in range(20):
            renewed_until = run.hold.trusted_until
            clock.advance(15.0)
            await runner.until(lambda until=renewed_until: run.hold.trusted_until > until)  # type: ignore[misc]
            assert await queue.claim(claimer="another") is None
        gate.open()
    assert (worker.health.done, (await queue.stats()).total) == (1, 0)


async def test_a_handler_that_hangs_loses_its_message_and_its_stack_is_logged(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def hang_here(value: int) -> None:
        began.open()
        await gate.wait()

    worker = AsyncWorker(hang_here, "jobs", client=client, lease_s=30.0, max_hold_s=60.0)
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put(1)
    async with AsyncRunner() as runner:
        await worker.start()
        await began.wait()
        worker.pause()
        (run,) = worker._shift._crews[0].running.values()  # type: ignore[union-attr]
        for seconds in (45.0, 60.0, 75.0):
            clock.advance(15.0)
            await runner.until(lambda ends=run.hold.since + seconds: run.hold.ends_at == ends)  # type: ignore[misc]
        with caplog.at_level(logging.ERROR, "holdfast"):
            clock.advance(15.0)
            await runner.until(lambda: not run.hold.auto_renew)
            clock.advance(15.0)
        await runner.until(lambda: worker.health.running == 0)
        clock.advance(30.0)
        claim = await queue.claim(claimer="another")
        assert claim is not None
        assert claim.failures == 1
        gate.open()
        await worker.stop()
    assert "max_hold_s" in caplog.text
    assert "hang_here" in caplog.text
    assert worker.health.done == 0


async def test_a_hard_limit_fails_a_job_that_hears_nobody_and_another_takes_its_place(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def hang_here(value: int) -> None:
        if value:
            return
        began.open()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()

    worker = AsyncWorker(hang_here, "jobs", client=client, hard_limit_s=30.0, max_attempts=1)
    await worker.put_many([0, 1, 2])
    async with worker, AsyncRunner() as runner:
        await began.wait()
        clock.advance(29.0)
        clock.advance(2.0)
        await runner.until(lambda: worker.health.done == 2)
        assert (worker.health.failed, worker.health.abandoned) == (1, 1)
        gate.open()
    (letter,) = await AsyncQueue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")
    assert "hang_here" in caplog.text
    assert (worker.health.done, worker.health.failed) == (2, 1), "what comes after the limit does not count"


async def test_what_ended_in_time_is_not_late_because_its_store_is_slow(client: ControlPlaneClient, clock: FakeClock) -> None:
    gates, stuck, go_on = [AsyncGate(), AsyncGate()], AsyncGate(), AsyncGate()
    execute = client.async_store.execute

    async def handle(value: int) -> None:
        await gates[value].wait()

    async def slow(command: Any) -> Any:
        if isinstance(command, Together):
            stuck.open()
            await go_on.wait()
        return await execute(command)

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=2, idempotent=True, hard_limit_s=30.0)
    jobs = await worker.put_many([0, 1])
    shift = worker._begin(until_empty=True)
    shift._queues[0]._store = Detour(client.async_store, slow)
    async with AsyncRunner() as runner:
        running = runner.start(shift.run)
        await runner.until(lambda: worker.health.running == 2)
        gates[0].open()
        await stuck.wait()
        gates[1].open()
        await runner.until(lambda: worker.health.running == 0)
        clock.advance(31.0)
        await runner.until(lambda: not any(shift._pools.timekeeper._lines.values()))
        go_on.open()
        await running.result()
    assert (worker.health.done, worker.health.failed, worker.health.abandoned) == (2, 0, 0)
    ledger = AsyncOnce("jobs-once", client=client)
    assert [(await ledger.get(job.id)).state for job in jobs] == ["done", "done"]  # type: ignore[union-attr]


async def test_what_ended_is_forgotten_whatever_still_runs(client: ControlPlaneClient) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def handle(value: int) -> None:
        if value == 0:
            began.open()
            await gate.wait()

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=2, soft_limit_s=30.0, hard_limit_s=60.0)
    await worker.put_many(range(50))
    async with worker, AsyncRunner() as runner:
        await began.wait()
        await runner.until(lambda: worker.health.done == 49)
        lines = worker._shift._pools.timekeeper._lines  # type: ignore[union-attr]
        assert [len(line) for line in lines.values()] == [1, 1]
        gate.open()
