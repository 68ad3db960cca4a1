"""A breaker that the workers of a queue share: it opens for all of them, and one of them lets one job try."""

from typing import Any

import pytest

from holdfast import Backoff, Breaker
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner

pytestmark = pytest.mark.anyio

NEVER = Backoff(100_000.0, jitter=0.0, most_s=100_000.0)
"""A job that failed is not tried again within the test."""

BREAKER = Breaker(2, cooldown_s=60.0, shared=True)


class Service:
    """What the handlers call: broken, or slow, or well."""

    def __init__(self) -> None:
        self.is_broken = True
        self.gate: AsyncGate | None = None
        self.calls: list[int] = []

    async def call(self, value: int) -> None:
        self.calls.append(value)
        if self.gate is not None:
            await self.gate.wait()
        if self.is_broken:
            raise ValueError("broken")


@pytest.fixture
def service() -> Service:
    return Service()


def make(client: ControlPlaneClient, service: Service, name: str, breaker: Breaker = BREAKER) -> "AsyncWorker[int, None, Any]":
    return AsyncWorker(service.call, "jobs", client=client, name=name, breaker=breaker, backoff=NEVER, lease_s=9999.0, schedules=False)


async def are_open(runner: AsyncRunner, queue: AsyncQueue[int], *workers: "AsyncWorker[int, None, Any]") -> None:
    """Wait until each has seen that the breaker is open, and nothing is claimed any more."""
    await runner.until(lambda: all(worker.health.state == "open" for worker in workers))
    while (await queue.stats()).leased:
        await runner.until(lambda: all(worker.health.running == 0 for worker in workers))


async def test_failures_of_one_worker_open_the_breaker_of_the_other(client: ControlPlaneClient, service: Service) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = AsyncQueue[int]("jobs", client=client)
    async with AsyncRunner() as runner:
        async with one:
            await queue.put_many([1, 2])
            await are_open(runner, queue, one)
        async with other:
            await queue.put_many([3, 4])
            await are_open(runner, queue, other)
        assert sorted(service.calls) == [1, 2], "the other worker began nothing"


async def test_failures_of_several_workers_count_together(client: ControlPlaneClient, service: Service) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = AsyncQueue[int]("jobs", client=client)
    async with AsyncRunner() as runner:
        async with one:
            await queue.put(1)
            await runner.until(lambda: one.health.failed == 1)
            assert one.health.state == "working"
        async with other:
            await queue.put_many([2, 3])
            await are_open(runner, queue, other)
    assert service.calls == [1, 2]


async def test_control_without_shared_each_worker_counts_its_own_failures(client: ControlPlaneClient, service: Service) -> None:
    """The control of the test above: what it shows is the store's doing."""
    own = Breaker(2, cooldown_s=60.0)
    one, other = make(client, service, "one", own), make(client, service, "other", own)
    queue = AsyncQueue[int]("jobs", client=client)
    async with AsyncRunner() as runner:
        async with one:
            await queue.put(1)
            await runner.until(lambda: one.health.failed == 1)
        async with other:
            await queue.put_many([2, 3])
            await are_open(runner, queue, other)
    assert service.calls == [1, 2, 3]


async def test_a_job_that_is_done_ends_the_row_of_failures(client: ControlPlaneClient, service: Service) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = AsyncQueue[int]("jobs", client=client)
    async with AsyncRunner() as runner:
        async with one:
            await queue.put(1)
            await runner.until(lambda: one.health.failed == 1)
            service.is_broken = False
            await queue.put(2)
            await runner.until(lambda: one.health.done == 1)
        service.is_broken = True
        async with other:
            await queue.put(3)
            await runner.until(lambda: other.health.failed == 1)
            service.is_broken = False
            await queue.put(4)
            await runner.until(lambda: other.health.done == 1)
    assert service.calls == [1, 2, 3, 4]
    assert await AsyncDict[int]("jobs-breaker", client=client).length() == 0


async def test_after_the_cooldown_one_worker_of_all_lets_one_job_try(
    client: ControlPlaneClient, service: Service, clock: FakeClock
) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = AsyncQueue[int]("jobs", client=client)
    async with AsyncRunner() as runner, one, other:
        await queue.put_many(range(10))
        await are_open(runner, queue, one, other)
        before = len(service.calls)
        service.gate = AsyncGate()
        clock.advance(61.0)
        await runner.until(lambda: len(service.calls) == before + 1)
        tries, waits = (one, other) if one.health.running else (other, one)
        assert waits.health.state == "open"
        clock.advance(61.0)
        assert (await queue.stats()).leased == 1
        assert len(service.calls) == before + 1
        service.gate.open()
        await runner.until(lambda: tries.health.state == "open")
        service.gate, service.is_broken = None, False
        assert len(service.calls) == before + 1, "the trial failed, so all wait again"
        clock.advance(61.0)
        await runner.until(lambda: one.health.done + other.health.done == 10 - before - 1)
        await runner.until(lambda: {one.health.state, other.health.state} == {"working"})


async def test_a_worker_that_stops_while_it_may_try_leaves_that_to_another(
    client: ControlPlaneClient, service: Service, clock: FakeClock
) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = AsyncQueue[int]("jobs", client=client)
    async with AsyncRunner() as runner:
        async with one:
            await queue.put_many([1, 2])
            await are_open(runner, queue, one)
            clock.advance(61.0)
            # The queue is empty: it may try, and waits for something to try.
            await runner.until(lambda: one.health.state == "working")
        service.is_broken = False
        async with other:
            await queue.put(3)
            await runner.until(lambda: other.health.done == 1)
    assert service.calls == [1, 2, 3]
