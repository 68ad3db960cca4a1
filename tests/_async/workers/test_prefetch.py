"""While jobs are short a worker claims more than it can begin; nobody waits longer for that, and nothing dies of it."""

from typing import Any

import pytest

from holdfast import Bury, WorkerOptions
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio


class AsyncSlow:
    """A handler that does nothing, but for one value, where it waits until it is let go on."""

    def __init__(self, slow: int) -> None:
        self.seen: list[int] = []
        self.began, self.gate = AsyncGate(), AsyncGate()
        self._slow = slow

    async def __call__(self, value: int) -> None:
        self.seen.append(value)
        if value == self._slow:
            self.began.open()
            await self.gate.wait()


# Not on memory, where a step takes no time in which others could gather.
@pytest.mark.parametrize("client", ["sqlite", "redis", "postgres"], indirect=True)
async def test_short_jobs_are_settled_and_claimed_many_at_a_time(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        pass

    steps: list[Together] = []
    execute = client.async_store.execute

    async def counted(command: Any) -> Any:
        if isinstance(command, Together):
            steps.append(command)
        return await execute(command)

    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put_many(range(500))
    shift = worker._begin(until_empty=True)
    shift._queues[0]._store = Detour(client.async_store, counted)
    await shift.run()
    assert worker.health.done == 500
    assert len(steps) < 100


@pytest.mark.parametrize("prefetch", [None, 0, 7])
async def test_no_more_jobs_run_at_once_than_it_may_however_many_are_held(client: ControlPlaneClient, prefetch: int | None) -> None:
    running: list[int] = []
    most: list[int] = []

    async def handle(value: int) -> None:
        running.append(value)
        most.append(len(running))
        async with AsyncRunner() as runner:
            turns = iter(range(3))
            await runner.until(lambda: next(turns, None) is None)
        running.remove(value)

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=2, prefetch=prefetch)
    await worker.put_many(range(60))
    await worker.run(until_empty=True)
    assert (max(most), worker.health.done) == (2, 60)


async def test_what_waits_behind_a_long_job_is_given_back_and_burns_nothing(client: ControlPlaneClient, clock: FakeClock) -> None:
    handle = AsyncSlow(20)
    worker = AsyncWorker(handle, "jobs", client=client)
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put_many(range(50))
    async with worker, AsyncRunner() as runner:
        await handle.began.wait()
        shift = worker._shift
        assert shift is not None
        # At rest: what a claim under way brings has its time from when it comes.
        await runner.until(lambda: len(shift._crews[0].running) > worker.health.running == 1 and shift._crews[0].bell._mark is not None)
        clock.advance(0.2)
        await runner.until(lambda: len(shift._crews[0].running) == 1 and not shift._queues[0]._unsettled)
        others = await queue.claim_many(100, claimer="another")
        assert [claim.value for claim in others] == list(range(21, 50)), "in their places"
        assert {claim.failures for claim in others} == {0}
        handle.gate.open()
    assert handle.seen == list(range(21))


async def test_stopping_gives_back_at_once_what_did_not_begin(client: ControlPlaneClient) -> None:
    handle = AsyncSlow(20)
    worker = AsyncWorker(handle, "jobs", client=client)
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put_many(range(50))
    async with AsyncRunner() as runner:
        await worker.start()
        await handle.began.wait()
        shift = worker._shift
        assert shift is not None
        await runner.until(lambda: len(shift._crews[0].running) > 1)
        stopping = runner.start(worker.stop)
        await runner.until(lambda: len(shift._crews[0].running) == 1)
        handle.gate.open()
        await stopping.result()
    stats = await queue.stats()
    assert (handle.seen, stats.ready, stats.leased) == (list(range(21)), 29, 0)


@pytest.mark.parametrize("why", ["it has one attempt left", "its worker died"])
async def test_what_should_not_share_a_worker_runs_alone(client: ControlPlaneClient, clock: FakeClock, why: str) -> None:
    began, gate = AsyncGate(), AsyncGate()
    leased: list[int] = []
    queue = AsyncQueue[int]("jobs", client=client)

    async def handle(value: int) -> None:
        if value >= 20:
            leased.append((await queue.stats()).leased)
        if value == 30:
            began.open()
            await gate.wait()

    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put_many(range(20, 50), max_attempts=1 if why == "it has one attempt left" else 9)
    if why == "its worker died":
        assert len(await queue.claim_many(30, claimer="the dead", lease_s=1.0)) == 30
        clock.advance(2.0)
    await worker.put_many(range(20), priority=1)
    async with worker, AsyncRunner() as runner:
        await began.wait()
        assert (await queue.stats()).leased == 1
        gate.open()
        await runner.until(lambda: worker.health.done == 50)
    # Not even for a moment: what came with the first of them was given back before it began.
    assert max(leased) == 1


@pytest.mark.parametrize("options", [WorkerOptions(idempotent=True), WorkerOptions(max_attempts=1), WorkerOptions(prefetch=0)])
async def test_nothing_is_claimed_ahead_where_that_could_do_harm(client: ControlPlaneClient, options: WorkerOptions) -> None:
    handle = AsyncSlow(20)
    worker = AsyncWorker(handle, "jobs", client=client, **options)
    await worker.put_many(range(50))
    async with worker:
        await handle.began.wait()
        assert worker._shift is not None
        assert len(worker._shift._crews[0].running) == 1
        handle.gate.open()


async def test_a_worker_that_must_know_what_it_began_refuses_to_prefetch(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise Bury

    with pytest.raises(ValueError, match="which of them it had begun"):
        AsyncWorker(handle, "jobs", client=client, idempotent=True, prefetch=3)
