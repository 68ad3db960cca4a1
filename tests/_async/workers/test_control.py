"""Workers are paused, slowed down, stopped; jobs are cancelled, reported on, limited in time."""

import logging
from typing import Any

import pytest

from holdfast import Backoff, Breaker, JobCancelled, JobContext, StoreUnavailable
from holdfast._async.handles.job import AsyncJob
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio


async def test_no_more_jobs_run_at_once_than_it_may(client: ControlPlaneClient) -> None:
    running: set[int] = set()
    most: list[int] = []
    gate = AsyncGate()

    async def handle(value: int) -> None:
        running.add(value)
        most.append(len(running))
        if len(most) >= 3:
            gate.open()
        await gate.wait()
        running.discard(value)

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=3)
    await worker.put_many(range(12))
    await worker.run(until_empty=True)
    assert max(most) == 3
    assert worker.health.done == 12


async def test_a_put_wakes_a_worker_that_waits(client: ControlPlaneClient) -> None:
    gate = AsyncGate()

    async def handle(value: int) -> None:
        gate.open()

    worker = AsyncWorker(handle, "jobs", client=client, poll_interval_s=3600.0)
    async with worker:
        await worker.put(1)
        await gate.wait()
    assert worker.health.done == 1


async def test_a_worker_runs_so_many_jobs_and_ends(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        pass

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=8)
    await worker.put_many(range(5))
    await worker.run(max_jobs=3)
    assert worker.health.done == 3
    assert await AsyncQueue[int]("jobs", client=client).length() == 2


async def test_jobs_begin_so_far_apart_as_it_was_told(client: ControlPlaneClient, clock: FakeClock) -> None:
    began: list[int] = []
    gates = [AsyncGate(), AsyncGate()]

    async def handle(value: int) -> None:
        began.append(value)
        gates[value].open()

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=5, min_interval_s=10.0)
    await worker.put_many([0, 1])
    async with worker, AsyncRunner() as runner:
        await gates[0].wait()
        await runner.until(lambda: worker.health.done == 1)
        clock.advance(9.0)
        stats = await AsyncQueue[int]("jobs", client=client).stats()
        assert (stats.ready, stats.leased) == (1, 0), "nothing is held while nothing is done"
        clock.advance(1.5)
        await gates[1].wait()
    assert began == [0, 1]


async def test_a_breaker_pauses_after_failures_in_a_row_and_lets_one_try(client: ControlPlaneClient, clock: FakeClock) -> None:
    seen: list[int] = []
    is_broken = True

    async def handle(value: int) -> None:
        seen.append(value)
        if is_broken:
            raise ValueError("broken")

    backoff = Backoff(1000.0, jitter=0.0, most_s=1000.0)
    worker = AsyncWorker(handle, "jobs", client=client, breaker=Breaker(2, cooldown_s=60.0), lease_s=9999.0, backoff=backoff)
    await worker.put_many(range(5))
    async with worker, AsyncRunner() as runner:
        await runner.until(lambda: worker.health.state == "open")
        assert seen == [0, 1]
        clock.advance(61.0)
        await runner.until(lambda: worker.health.failed == 3)
        await runner.until(lambda: worker.health.state == "open")
        assert seen == [0, 1, 2]
        is_broken = False
        clock.advance(61.0)
        await runner.until(lambda: worker.health.done == 2)
    assert seen == [0, 1, 2, 3, 4]


async def test_a_paused_worker_claims_nothing_until_it_is_resumed(client: ControlPlaneClient) -> None:
    gate = AsyncGate()

    async def handle(value: int) -> None:
        gate.open()

    worker = AsyncWorker(handle, "jobs", client=client)
    queue = AsyncQueue[int]("jobs", client=client)
    async with worker:
        worker.pause()
        assert worker.health.state == "paused"
        await worker.put(1)
        assert (await queue.stats()).ready == 1
        worker.resume()
        await gate.wait()
    assert (await queue.stats()).total == 0


async def test_stopping_lets_jobs_finish_and_claims_no_more(client: ControlPlaneClient) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def handle(value: int) -> None:
        began.open()
        await gate.wait()

    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put_many([1, 2])
    async with AsyncRunner() as runner:
        await worker.start()
        await began.wait()
        stopping = runner.start(worker.stop)
        await runner.until(lambda: worker.health.state == "stopping")
        gate.open()
        await stopping.result()
    stats = await AsyncQueue[int]("jobs", client=client).stats()
    assert (worker.health.done, stats.ready, stats.leased) == (1, 1, 0)


async def test_what_does_not_finish_in_time_is_ready_again_and_burns_nothing(client: ControlPlaneClient) -> None:
    began = AsyncGate()

    async def handle(value: int, job: JobContext) -> None:
        began.open()
        async with AsyncRunner() as runner:
            await runner.until(lambda: job.should_stop)
        job.check()

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=1)
    await worker.put(1)
    await worker.start()
    await began.wait()
    await worker.stop(grace_s=0.0)
    (message,) = await AsyncQueue[int]("jobs", client=client).browse()
    assert (message.state, message.attempts, message.failures) == ("ready", 1, 0)


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
            await runner.until(lambda: bool(shift._cancelled))
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


async def test_reports_are_seen_while_the_job_runs_and_gone_with_it(client: ControlPlaneClient) -> None:
    gate = AsyncGate()

    async def handle(value: int, job: JobContext) -> None:
        job.report({"part": 1})
        job.report({"part": 2})
        await gate.wait()

    worker = AsyncWorker(handle, "jobs", client=client)
    job = await worker.put(1)
    async with worker:
        async for event in AsyncDict[Any]("jobs-progress", client=client).watch(timeout_s=60.0):
            if event.data["value"] == {"part": 2}:
                break
        assert await job.progress() == {"part": 2}
        gate.open()
    assert await job.progress() is None


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
        (run,) = worker._shift._crew.running.values()  # type: ignore[union-attr]
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
        (run,) = worker._shift._crew.running.values()  # type: ignore[union-attr]
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


async def test_the_registry_shows_who_lives_and_tells_incarnations_apart(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def handle(value: int) -> None:
        pass

    first = AsyncWorker(handle, "jobs", client=client, name="same")
    second = AsyncWorker(handle, "jobs", client=client, name="same")
    async with AsyncRunner() as runner, first:
        await second.start()
        await runner.until(lambda: first._shift._beat_at > 0 and second._shift._beat_at > 0)  # type: ignore[union-attr]
        found = await AsyncWorker.list(client=client)
        assert [(one.name, one.queue, one.health.state) for one in found] == [("same", "jobs", "working")] * 2
        assert len({one.incarnation for one in found}) == 2
        await second.stop()
        assert len(await AsyncWorker.list(client=client)) == 1
    assert await AsyncWorker.list(client=client) == []


async def test_a_worker_goes_on_by_itself_when_its_store_is_back(client: ControlPlaneClient) -> None:
    gate = AsyncGate()

    async def handle(value: int) -> None:
        if value:
            gate.open()

    worker = AsyncWorker(handle, "jobs", client=client)
    store = client.async_store
    execute = store.execute
    is_away = False

    async def away(command: Any) -> Any:
        if is_away:
            raise StoreUnavailable("gone for a walk")
        return await execute(command)

    shift = worker._begin()
    shift._store = shift._registration._store = Detour(store, away)
    async with AsyncRunner() as runner:
        running = runner.start(shift.run)
        is_away = True
        await worker.put(0)
        await runner.until(lambda: worker.health.state == "away")
        assert "gone for a walk" in (worker.health.error or "")
        is_away = False
        await worker.put(1)
        await gate.wait()
        await runner.until(lambda: worker.health.state == "working")
        assert worker.health.outages == 1
        worker.tell_stop()
        await running.result()
    assert worker.health.done == 2


async def test_a_lost_claim_is_not_acknowledged(client: ControlPlaneClient, caplog: pytest.LogCaptureFixture) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def handle(value: int) -> None:
        began.open()
        await gate.wait()

    worker = AsyncWorker(handle, "jobs", client=client)
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put(1, id="one")
    async with worker, AsyncRunner() as runner:
        await began.wait()
        await queue.clear()
        await worker.put(2, id="one")
        gate.open()
        await runner.until(lambda: worker.health.done == 2)
    assert "will be run again" in caplog.text
