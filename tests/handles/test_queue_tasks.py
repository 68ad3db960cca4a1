"""What only tasks, real time and other processes show of a queue."""

import asyncio
import math
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast import ClaimLost, Closed, ControlPlaneClient, Dict, Queue, StoreError, connect
from holdfast.client import client_for
from holdfast.commands.topics import queue_topic
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner, waiting_on

pytestmark = pytest.mark.anyio


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/store?durability=process") as made:
        yield made


async def test_a_cancelled_body_gives_back_and_burns_nothing(client: ControlPlaneClient) -> None:
    jobs = Queue.from_name("jobs", client=client).aio
    await jobs.put(1, max_attempts=1)
    inside = asyncio.Event()

    async def work() -> None:
        async with jobs.claimed(claimer="w"):
            inside.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    claim = await jobs.claim(claimer="w")
    assert claim is not None
    assert (claim.attempts, claim.failures) == (2, 0)


async def test_a_body_is_cancelled_when_its_claim_is_lost(client: ControlPlaneClient) -> None:
    jobs = Queue.from_name("jobs", client=client).aio
    await jobs.put(1)

    async def work() -> None:
        async with jobs.claimed(claimer="w", lease_s=1.0):
            await jobs.delete()
            await asyncio.sleep(60)

    with pytest.raises(ClaimLost):
        await work()


async def test_a_body_that_has_settled_is_left_alone() -> None:
    clock = FakeClock()
    jobs = Queue.from_name("jobs", client=ControlPlaneClient.on(MemoryStore(clock=clock))).aio
    await jobs.put_many([1, 2])
    settled, held = (jobs.claimed(claimer="w", lease_s=30.0) for _ in range(2))
    async with settled, held:
        assert settled.claim is not None
        await settled.claim.ack()
        await renewed_after(clock, held, 10)
        await renewed_after(clock, held, 25)  # By now the lease of what is settled would have ended.
    assert (await jobs.stats()).total == 0


async def renewed_after(clock: FakeClock, context: Any, seconds: float) -> None:
    """Wait until the claim was renewed at that moment."""
    before = context.claim.expires_at
    clock.advance(seconds)
    while context.claim.expires_at == before:  # noqa: ASYNC110 - the thread that renews rings nobody
        await asyncio.sleep(0.001)


async def test_a_long_body_is_renewed() -> None:
    clock = FakeClock()
    jobs = Queue.from_name("jobs", client=ControlPlaneClient.on(MemoryStore(clock=clock))).aio
    await jobs.put(1)
    context = jobs.claimed(claimer="w", lease_s=30.0)
    async with context:
        await renewed_after(clock, context, 10)
        clock.advance(25)
        assert await jobs.claim(claimer="other") is None
    assert (await jobs.stats()).total == 0


async def test_of_a_thousand_waiters_a_put_wakes_one_and_none_of_another_queue() -> None:
    client = ControlPlaneClient.on(MemoryStore(clock=FakeClock()))
    busy, quiet = Queue.from_name("busy", client=client).aio, Queue.from_name("quiet", client=client).aio
    asked: list[str] = []
    execute = client.async_store.execute

    async def counted(command: Any) -> Any:
        asked.append(getattr(command, "queue", ""))
        return await execute(command)

    client.async_store.execute = counted  # type: ignore[method-assign] # to count the questions
    waiting = [asyncio.create_task(busy.get(timeout_s=math.inf, poll_interval_s=math.inf)) for _ in range(1_000)]
    other = asyncio.create_task(quiet.get(timeout_s=math.inf, poll_interval_s=math.inf))
    async with AsyncRunner() as runner:
        await runner.until(lambda: waiting_on(client.store, queue_topic("busy")) == 1_000)
        await runner.until(lambda: waiting_on(client.store, queue_topic("quiet")) == 1)
    asked.clear()
    await busy.put("one")
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for _ in range(100):
        await asyncio.sleep(0)  # Whoever else was woken asks now.
    assert [task.result() for task in done] == ["one"]
    assert asked == ["busy", "busy"]  # the put, and the one who was woken
    assert not other.done()
    client.close()
    ended = await asyncio.gather(*waiting, other, return_exceptions=True)
    assert sum(isinstance(end, Closed) for end in ended) == 1_000


def test_in_a_forked_child_a_claim_is_lost(client: ControlPlaneClient) -> None:
    jobs = Queue.from_name("jobs", client=client)
    jobs.put(1)
    claim = jobs.claim(claimer="w")
    assert claim is not None
    child = os.fork()
    if child == 0:
        try:
            jobs.ack(claim)
        except ClaimLost:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert jobs.ack(claim).count == 1


def test_a_handle_and_its_twin_share_everything(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", client=client)
    twin = jobs.aio
    assert isinstance(twin, Queue.aio)
    assert (twin.name, twin.aio) == ("jobs", twin)
    asyncio.run(twin.put(1))
    assert jobs.get() == 1


async def test_the_class_has_a_twin(client: ControlPlaneClient) -> None:
    jobs = await Queue.aio.create("jobs", client=client)
    await jobs.put(1)
    assert [queue.name for queue in await Queue.aio.list(client=client)] == ["jobs"]


async def test_a_step_for_tasks(client: ControlPlaneClient) -> None:
    async with client.aio.together() as step:
        put = step.put("jobs", 1)
    assert put.result.created
    with client.together() as step_of_threads:
        step_of_threads.put("jobs", 2)
    assert await Queue.from_name("jobs", client=client).aio.get_many(5) == [1, 2]


def test_a_step_on_a_connection_of_ones_own(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    client = ControlPlaneClient.on(connect(connection))
    jobs = Queue.from_name("jobs", client=client)
    connection.execute("begin immediate")
    jobs.put(1)
    connection.execute("rollback")
    assert jobs.length() == 0
    jobs.put(2)
    with pytest.raises(StoreError, match="auto_renew=False"):
        jobs.claimed(claimer="w").__enter__()
    with jobs.claimed(claimer="w", auto_renew=False) as item:
        assert item == 2
    assert jobs.length() == 0
    client.close()
    connection.close()


def test_a_lease_on_a_connection_of_ones_own_is_not_held_on_to_in_the_background(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    client = ControlPlaneClient.on(connect(connection))
    shared: Dict[object] = Dict.from_name("shared", client=client)
    with pytest.raises(StoreError, match="auto_renew=False"):
        shared.lease("a", holder="w").__enter__()
    with shared.lease("a", holder="w", auto_renew=False) as lease, pytest.raises(StoreError, match="auto_renew=False"):
        lease.keep()
    client.close()
    connection.close()


def test_a_claim_is_settled_by_the_other_twin() -> None:
    client = ControlPlaneClient.on(MemoryStore(clock=FakeClock()))
    jobs = Queue.from_name("jobs", client=client)
    jobs.put(1)
    claim = jobs.claim(claimer="w")
    assert claim is not None
    assert asyncio.run(jobs.aio.ack(claim)).count == 1
    assert claim.lost


def test_a_call_may_name_its_store(tmp_path: Path) -> None:
    jobs = Queue.from_name("jobs")
    url = f"sqlite:///{tmp_path}/store?durability=process"
    jobs.put(1, base_url=url)
    with ControlPlaneClient(url) as client:
        assert jobs.get(client=client, base_url="memory://elsewhere") == 1
    client_for(url).close()
