"""Lock: a name that one holder has at a time."""

import pytest

from holdfast._async.handles.lock import AsyncLock
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import lease_topic
from holdfast.errors import LockTimeout
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner, waiting_on

pytestmark = pytest.mark.anyio

TOPIC = lease_topic(None, '["lock","reports"]')


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def inside(lock: AsyncLock, seen: list[int]) -> None:
    async with lock as held:
        seen.append(held.token)
        held.check()


async def test_one_is_inside_and_the_next_has_a_larger_token(client: ControlPlaneClient) -> None:
    lock = AsyncLock("reports", client=client, poll_interval_s=3_600.0)
    seen: list[int] = []
    async with AsyncRunner() as runner:
        async with lock as held:
            others = [runner.start(inside, lock, seen) for _ in range(3)]
            await runner.until(lambda: waiting_on(client.store, TOPIC) == 3)
            assert seen == []
        for other in others:
            await other.result()
    assert seen == sorted(seen)
    assert seen[0] > held.token
    assert await lock.holding() is None


async def test_who_holds_it_can_be_asked(client: ControlPlaneClient) -> None:
    async with AsyncLock("reports", holder="a", client=client) as held:
        found = await AsyncLock("reports", client=client).holding()
        assert found is not None
        assert (found.holder, found.token) == ("a", held.token)
        assert held.key == "reports"


async def test_it_is_not_reentrant_by_name(client: ControlPlaneClient) -> None:
    async with AsyncLock("reports", holder="a", client=client):
        with pytest.raises(LockTimeout, match="lock 'reports' is held by 'a'"):
            await AsyncLock("reports", holder="a", client=client, wait_timeout_s=0).acquire()
        assert await AsyncLock("reports", holder="a", client=client).try_acquire() is None


async def test_acquired_it_is_renewed_until_it_is_released(client: ControlPlaneClient, clock: FakeClock) -> None:
    lock = AsyncLock("reports", lease_s=30, client=client)
    held = await lock.acquire()
    ends_at = held.expires_at
    async with AsyncRunner() as runner:
        clock.advance(10)
        await runner.until(lambda: held.expires_at != ends_at)
    await held.release()
    again = await lock.try_acquire()
    assert again is not None
    assert again.token > held.token


async def test_a_dead_holders_lock_comes_free(client: ControlPlaneClient, clock: FakeClock) -> None:
    async with ControlPlaneClient.on(client.store) as dying:
        await AsyncLock("reports", lease_s=30, client=dying).acquire()
        dying.keepalive.close()
        async with AsyncRunner() as runner:
            seen: list[int] = []
            waiting = runner.start(inside, AsyncLock("reports", client=client, poll_interval_s=3_600.0), seen)
            await runner.until(lambda: waiting_on(client.store, TOPIC) == 1)
            clock.advance(30)
            await waiting.result()
            assert len(seen) == 1


async def test_locks_of_other_names_do_not_meet(client: ControlPlaneClient) -> None:
    async with AsyncLock("a", client=client), AsyncLock("b", client=client, wait_timeout_s=0):
        pass


async def test_the_twin_for_tasks_is_the_same_lock(client: ControlPlaneClient) -> None:
    lock = AsyncLock("reports", holder="a", client=client)
    assert (lock.aio.name, lock.aio.holder) == ("reports", "a")
