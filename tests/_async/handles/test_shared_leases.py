"""Semaphores, read-write locks and fair locks: several hold a name, or wait for it in a line."""

import math

import pytest

from holdfast._async.handles.lock import AsyncLock
from holdfast._async.handles.rwlock import AsyncRWLock
from holdfast._async.handles.semaphore import AsyncSemaphore
from holdfast._async.handles.shared import AsyncSharedLease
from holdfast.client import ControlPlaneClient
from holdfast.commands import Changes
from holdfast.errors import LineFull, LockTimeout, Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def in_line(store: Store) -> int:
    """How many wait in line at this moment."""
    return sum(store.waiters.waiting(topic) for topic in store.waiters.topics() if topic.startswith("line:"))


async def inside(lock: AsyncSharedLease | AsyncLock, seen: list[tuple[str, int]]) -> None:
    async with lock as held:
        seen.append((lock.holder, held.token))


async def test_as_many_as_the_capacity_are_inside_each_under_its_own_token(client: ControlPlaneClient) -> None:
    one, two, three = (AsyncSemaphore("gpu", 2, holder=holder, client=client) for holder in ("one", "two", "three"))
    async with one as first, two as second:
        assert first.token < second.token
        assert [holder.holder for holder in await one.holders()] == ["one", "two"]
        assert await three.try_acquire() is None
        with pytest.raises(LockTimeout, match=r"semaphore 'gpu' is held by 'one' and 1 more for 60 seconds more, and did not"):
            await three.acquire(wait_timeout_s=0)
    async with three as third:
        assert third.token > second.token
    assert await three.holders() == []


async def test_waiters_are_served_in_the_order_of_arrival(client: ControlPlaneClient) -> None:
    seen: list[tuple[str, int]] = []
    async with AsyncRunner() as runner:
        async with AsyncSemaphore("gpu", 1, client=client):
            others = []
            for number in range(8):
                lock = AsyncSemaphore("gpu", 1, holder=str(number), client=client)
                others.append(runner.start(inside, lock, seen))
                await runner.until(lambda number=number: in_line(client.store) == number + 1)  # type: ignore[misc]
        for other in others:
            await other.result()
    assert [holder for holder, _ in seen] == [str(number) for number in range(8)]
    assert [token for _, token in seen] == sorted(token for _, token in seen)


async def test_a_fair_lock_serves_in_turn_and_is_fair_to_all_or_none(client: ControlPlaneClient) -> None:
    seen: list[tuple[str, int]] = []
    async with AsyncRunner() as runner:
        async with AsyncLock("reports", holder="first", client=client, fair=True):
            other = runner.start(inside, AsyncLock("reports", holder="next", client=client, fair=True), seen)
            await runner.until(lambda: in_line(client.store) == 1)
            with pytest.raises(Refused, match="fair=True"):
                await AsyncLock("reports", client=client).acquire()
            with pytest.raises(LineFull):
                await AsyncLock("reports", client=client, fair=True, max_waiters=1).acquire()
            holding = await AsyncLock("reports", client=client, fair=True).holding()
            assert holding is not None
            assert holding.holder == "first"
        await other.result()
    assert [holder for holder, _ in seen] == ["next"]
    async with AsyncLock("reports", client=client):
        with pytest.raises(Refused, match="fair=True"):
            await AsyncLock("reports", client=client, fair=True).acquire()


async def test_readers_are_inside_together_and_a_writer_alone(client: ControlPlaneClient) -> None:
    lock = AsyncRWLock("index", client=client)
    seen: list[tuple[str, int]] = []
    async with AsyncRunner() as runner:
        async with lock.reading(), lock.reading():
            assert len(await lock.holders()) == 2
            assert await lock.writing().try_acquire() is None
            writer = runner.start(inside, AsyncRWLock("index", holder="writer", client=client).writing(), seen)
            await runner.until(lambda: in_line(client.store) == 1)
            assert await lock.reading().try_acquire() is None, "a waiting writer lets no later reader in"
            reader = runner.start(inside, AsyncRWLock("index", holder="late reader", client=client).reading(), seen)
            await runner.until(lambda: in_line(client.store) == 2)
        await writer.result()
        await reader.result()
    assert [holder for holder, _ in seen] == ["writer", "late reader"]


async def test_whoever_stops_waiting_gives_up_the_place(client: ControlPlaneClient) -> None:
    held = await AsyncSemaphore("gpu", 1, client=client).acquire()
    with pytest.raises(LockTimeout):
        await AsyncSemaphore("gpu", 1, client=client).acquire(wait_timeout_s=0.001)
    await held.release()
    assert await AsyncSemaphore("gpu", 1, client=client).try_acquire() is not None, "nobody is waited for"


async def test_resizing_lets_in_those_who_wait(client: ControlPlaneClient) -> None:
    semaphore = AsyncSemaphore("gpu", 1, client=client)
    seen: list[tuple[str, int]] = []
    async with AsyncRunner() as runner, semaphore:
        other = runner.start(inside, AsyncSemaphore("gpu", 1, client=client), seen)
        await runner.until(lambda: in_line(client.store) == 1)
        assert await semaphore.resize(2) == 1
        await other.result()
    assert len(seen) == 1
    assert await semaphore.resize(None) == 0


async def test_a_handle_that_can_never_be_granted_is_refused_when_it_is_made(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="weight must be at most the capacity of 2, not 3"):
        AsyncSemaphore("gpu", 2, weight=3, client=client)
    with pytest.raises(ValueError, match="capacity must be a whole number from 1"):
        AsyncSemaphore("gpu", 0, client=client)
    with pytest.raises(ValueError, match="in_line_s must"):
        AsyncRWLock("index", in_line_s=math.nan, client=client)
    with pytest.raises(TypeError, match="fair must be True or False"):
        AsyncLock("reports", fair="yes", client=client)  # type: ignore[arg-type]


async def test_a_share_is_renewed_while_its_holder_is_inside(client: ControlPlaneClient, clock: FakeClock) -> None:
    async with AsyncSemaphore("gpu", 1, lease_s=10.0, client=client) as held:
        clock.advance(6)
        await held.renew()
        clock.advance(6)
        assert await AsyncSemaphore("gpu", 1, client=client).try_acquire() is None
        page = await client.async_store.execute(Changes('lease::["semaphore","gpu"]'))
        assert [event.event for event in page.events] == ["acquired"]
