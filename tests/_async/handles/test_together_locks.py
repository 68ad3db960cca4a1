"""Locks, semaphores, read-write locks and limiters in one atomic step."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Rate
from holdfast._async.handles.limiter import AsyncLimiter
from holdfast._async.handles.lock import AsyncLock
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.rwlock import AsyncRWLock
from holdfast._async.handles.semaphore import AsyncSemaphore
from holdfast._async.handles.together import AsyncTogether
from holdfast.errors import LeaseHeld, LeaseLost, RateLimited, Refused
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite", "lmdb", "postgres", "redis", "http"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_locks_and_shares_are_taken_with_the_rest_and_given_back_with_the_rest(client: ControlPlaneClient) -> None:
    lock, gpu, index = AsyncLock("a", client=client), AsyncSemaphore("gpu", 2, client=client), AsyncRWLock("index", client=client)
    async with AsyncTogether(client) as step:
        taken = [step.acquire_lock(one) for one in (lock, gpu, index.writing())]
        step.put("jobs", 1)
    held = [one.result for one in taken]
    assert [one.held for one in held] == [True, True, True]
    assert len({one.token for one in held}) == 3
    assert (await lock.try_acquire(), await index.reading().try_acquire()) == (None, None)
    async with AsyncTogether(client) as step:
        given_back = [step.release_lock(one) for one in held]
        step.put("jobs", 2)
    assert [one.result for one in given_back] == [True, True, True]
    assert [one.lost for one in held] == [True, True, True]
    assert (await lock.holding(), await gpu.holders(), await index.holders()) == (None, [], [])
    assert await AsyncQueue.from_name("jobs", client=client).length() == 2


async def test_what_others_hold_refuses_the_whole_step(client: ControlPlaneClient) -> None:
    lock, full = AsyncLock("a", holder="other", client=client), AsyncSemaphore("gpu", 1, client=client)
    free = AsyncLock("free", client=client)
    async with lock, full:
        for one in (lock, full):
            step = AsyncTogether(client)
            step.acquire_lock(free)
            step.acquire_lock(one)
            step.put("jobs", 1)
            with pytest.raises(LeaseHeld):
                await step.__aexit__(None, None, None)
    assert await free.holding() is None
    assert await AsyncQueue.from_name("jobs", client=client).length() == 0


async def test_a_step_happens_only_while_the_lock_that_it_renews_is_held(client: ControlPlaneClient) -> None:
    lock, gpu = AsyncLock("a", lease_s=10.0, client=client), AsyncSemaphore("gpu", 2, lease_s=10.0, client=client)
    for one in (lock, gpu):
        held = await one.acquire()
        await one.break_("stuck")
        for late in (AsyncTogether.renew_lock, AsyncTogether.release_lock):
            step = AsyncTogether(client)
            late(step, held)
            step.put("jobs", 1)
            with pytest.raises(LeaseLost):
                await step.__aexit__(None, None, None)
    assert await AsyncQueue.from_name("jobs", client=client).length() == 0


async def test_renewing_in_a_step_says_how_long_it_is_held(client: ControlPlaneClient) -> None:
    held = await AsyncLock("a", lease_s=10.0, client=client).acquire()
    async with AsyncTogether(client) as step:
        renewed = step.renew_lock(held, lease_s=100.0)
        step.put("jobs", 1)
    assert renewed.result is held
    ((seen,),) = [one.holders for one in await AsyncLock.list(client=client)]
    assert seen.since is not None
    assert seen.until == seen.since + timedelta(seconds=100)
    await held.release()


async def test_a_rate_decides_about_a_whole_step(client: ControlPlaneClient, clock: FakeClock) -> None:
    limiter = AsyncLimiter("api", Rate(60, per_s=60.0, burst=3), client=client)
    async with AsyncTogether(client) as step:
        used = step.acquire_rate(limiter, key=("tenant", 1), cost=2)
        step.put("jobs", 1)
    assert used.result.updated
    step = AsyncTogether(client)
    step.acquire_rate(limiter, key=("tenant", 1), cost=2)
    step.put("jobs", 2)
    with pytest.raises(RateLimited) as refused:
        await step.__aexit__(None, None, None)
    assert refused.value.due_in_s == 1.0
    clock.advance(1)
    await limiter.acquire(key=("tenant", 1), cost=2)
    assert await AsyncQueue.from_name("jobs", client=client).length() == 1


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[ControlPlaneClient]:
    async with ControlPlaneClient(f"sqlite:///{tmp_path}/own.db") as made:
        yield made


async def test_a_transaction_of_the_caller_renews_and_releases_but_takes_no_lock(own: ControlPlaneClient, tmp_path: Path) -> None:
    lock = AsyncLock("a", client=own)
    held = await lock.acquire()
    connection = sqlite3.connect(tmp_path / "own.db")
    async with AsyncTogether(own, connection) as step:
        step.renew_lock(held, lease_s=1_000.0)
    connection.rollback()
    assert held.trusted_for_s <= 60, "the longer time was rolled back"
    with pytest.raises(ValueError, match="your transaction would hide"):
        AsyncTogether(own, connection).acquire_lock(lock)
    async with AsyncTogether(own, connection) as step:
        step.release_lock(held)
    connection.commit()
    connection.close()
    assert await lock.holding() is None


async def test_a_refused_step_goes_on_renewing_what_it_would_have_given_back(own: ControlPlaneClient) -> None:
    held = await AsyncLock("a", client=own).acquire()
    step = AsyncTogether(own)
    step.release_lock(held)
    step.expect(AsyncDict.from_name("state", client=own), "k", "there")
    with pytest.raises(Refused):
        await step.__aexit__(None, None, None)
    assert len(own.keepalive) == 1
    assert held.held
    await held.release()
    with pytest.raises(LeaseLost):
        AsyncTogether(own).release_lock(held)


async def test_locks_of_a_step_that_is_interrupted_are_given_back(own: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        async def execute(self, command: Any) -> Any:
            await own.async_store.execute(command)
            raise KeyboardInterrupt

    lock = AsyncLock("a", client=own)
    step = AsyncTogether(own)
    taken = step.acquire_lock(lock)
    monkeypatch.setattr(own, "async_store_on", lambda _: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        await step.__aexit__(None, None, None)
    assert await lock.holding() is None
    with pytest.raises(RuntimeError, match="not committed"):
        _ = taken.result


async def test_locks_and_limiters_of_another_store_are_refused(own: ControlPlaneClient) -> None:
    async with ControlPlaneClient("memory://") as other:
        held = await AsyncLock("a", client=other).acquire()
        parts: list[Callable[[AsyncTogether], Any]] = [
            lambda step: step.acquire_lock(AsyncLock("b", client=other)),
            lambda step: step.renew_lock(held),
            lambda step: step.acquire_rate(AsyncLimiter("c", Rate(1, per_s=1.0), client=other)),
        ]
        for add in parts:
            with pytest.raises(ValueError, match="another store"):
                add(AsyncTogether(own))
        await held.release()


async def test_a_finished_step_takes_no_lock(own: ControlPlaneClient) -> None:
    step = AsyncTogether(own)
    async with step:
        pass
    with pytest.raises(RuntimeError, match="is finished"):
        step.acquire_lock(AsyncLock("a", client=own))
