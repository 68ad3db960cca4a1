"""Leases and locks on keys of a dict."""

import math
from typing import Any

import msgspec
import pytest

from holdfast._async.handles.mapping import AsyncDict
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import lease_topic
from holdfast.errors import Closed, LeaseHeld, LeaseLost, LockTimeout
from holdfast.results import DictResponse
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner, waiting_on

pytestmark = pytest.mark.anyio

NEVER_POLLS_S = 3_600.0


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(client: ControlPlaneClient) -> AsyncDict[Any]:
    return AsyncDict.from_name("shared", client=client)


async def test_a_lease_shows_the_value_and_a_growing_token(shared: AsyncDict[Any]) -> None:
    await shared.put("alpha", {"score": 1})
    first = await shared.acquire_lease("alpha", holder="a")
    assert (first.key, first.holder, first.current_value, first.held) == ("alpha", "a", {"score": 1}, True)
    await first.release()
    second = await shared.acquire_lease("alpha", holder="b")
    assert second.token > first.token


async def test_a_held_lease_is_refused_also_to_the_same_name(shared: AsyncDict[Any]) -> None:
    await shared.acquire_lease("alpha", holder="a", lease_s=10)
    with pytest.raises(LeaseHeld, match="held by 'a' for 10 seconds more") as refused:
        await shared.acquire_lease("alpha", holder="a")
    assert (refused.value.holder, refused.value.expires_in_s) == ("a", 10.0)


async def test_renewing_by_id_keeps_the_lease_and_whoever_holds_it_knows(shared: AsyncDict[Any], clock: FakeClock) -> None:
    lease = await shared.acquire_lease("alpha", holder="a", lease_s=60)
    ended_at = lease.expires_at
    clock.advance(30)
    renewed = await shared.renew_lease("alpha", lease_id=lease.lease_id, lease_s=120)
    assert (renewed.lease_id, renewed.token) == (lease.lease_id, lease.token)
    clock.advance(90)
    assert lease.held
    assert renewed.held
    assert ended_at is not None
    assert lease.expires_at is not None
    assert (lease.expires_at - ended_at).total_seconds() == 90
    assert renewed.expires_at == lease.expires_at


async def test_a_lease_that_ended_is_lost_and_cannot_be_renewed(shared: AsyncDict[Any], clock: FakeClock) -> None:
    lease = await shared.acquire_lease("alpha", holder="a", lease_s=10)
    clock.advance(10)
    assert lease.lost
    with pytest.raises(LeaseLost, match="alpha"):
        lease.check()
    with pytest.raises(LeaseLost):
        await lease.renew()
    with pytest.raises(LeaseLost):
        await shared.renew_lease("alpha", lease_id=lease.lease_id, lease_s=10)


async def test_a_holder_trusts_a_lease_for_less_than_it_lasts(shared: AsyncDict[Any], clock: FakeClock) -> None:
    lease = await shared.acquire_lease("alpha", holder="a", lease_s=5)
    clock.advance(4.5)
    assert lease.lost
    await lease.renew()
    assert lease.held


async def test_release_says_what_was_lost_and_raises_nothing(shared: AsyncDict[Any], clock: FakeClock) -> None:
    lease = await shared.acquire_lease("alpha", holder="a", lease_s=10)
    assert await shared.release_lease("alpha", lease_id=lease.lease_id) == DictResponse(1)
    assert lease.lost
    assert await shared.release_lease("alpha", lease_id=lease.lease_id) == DictResponse(0, 1)
    assert await lease.release() == DictResponse(0, 1)


async def test_a_stale_holder_releases_nothing_of_the_new_one(shared: AsyncDict[Any], clock: FakeClock) -> None:
    stale = await shared.acquire_lease("alpha", holder="a", lease_s=10)
    clock.advance(10)
    fresh = await shared.acquire_lease("alpha", holder="b", lease_s=10)
    assert await stale.release() == DictResponse(0, 1)
    holder = await shared.lease_holder("alpha")
    assert holder is not None
    assert (holder.holder, holder.token) == ("b", fresh.token)


async def test_a_context_holds_and_gives_back(shared: AsyncDict[Any]) -> None:
    await shared.put("alpha", 1)
    async with shared.lease("alpha", holder="a") as lease:
        assert lease.current_value == 1
        assert await shared.lease_holder("alpha") is not None
    assert await shared.lease_holder("alpha") is None
    assert lease.lost


async def fail_inside(shared: AsyncDict[Any]) -> None:
    async with shared.lease("alpha", holder="a"):
        raise ZeroDivisionError


async def test_a_context_gives_back_after_an_error(shared: AsyncDict[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail_inside(shared)
    assert await shared.lease_holder("alpha") is None


async def test_a_context_is_for_one_body(shared: AsyncDict[Any]) -> None:
    context = shared.lease("alpha", holder="a")
    async with context as lease:
        assert context.lease is lease
    with pytest.raises(RuntimeError, match="make another"):
        await context.__aenter__()


async def test_a_context_is_renewed_while_the_body_runs(client: ControlPlaneClient, shared: AsyncDict[Any], clock: FakeClock) -> None:
    async with AsyncRunner() as runner, shared.lease("alpha", holder="a", lease_s=30) as lease:
        for _ in range(10):
            ends_at = lease.expires_at
            clock.advance(10)
            await runner.until(lambda ends_at=ends_at: lease.expires_at != ends_at)  # type: ignore[misc]
        lease.check()


async def test_leaving_a_lost_lease_raises(shared: AsyncDict[Any], clock: FakeClock) -> None:
    context = shared.lease("alpha", holder="a", lease_s=10, auto_renew=False)
    await context.__aenter__()
    clock.advance(10)
    with pytest.raises(LeaseLost, match="alpha"):
        await context.__aexit__(None, None, None)


async def test_an_error_of_the_body_passes_with_a_note_of_the_loss(shared: AsyncDict[Any], clock: FakeClock) -> None:
    context = shared.lease("alpha", holder="a", lease_s=10, auto_renew=False)
    await context.__aenter__()
    clock.advance(10)
    error = ZeroDivisionError("the body's own")
    await context.__aexit__(ZeroDivisionError, error, None)
    assert ["is lost" in note for note in error.__notes__] == [True]


async def test_an_error_passes_with_a_note_when_the_client_was_closed_meanwhile(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    context = shared.lease("alpha", holder="a")
    await context.__aenter__()
    client.close()
    error = ZeroDivisionError("the body's own")
    await context.__aexit__(ZeroDivisionError, error, None)
    assert "is lost: its client was closed" in error.__notes__[0]


async def test_giving_back_early_is_not_a_loss(shared: AsyncDict[Any]) -> None:
    async with shared.locked("alpha", holder="a") as lock:
        assert await lock.release() == DictResponse(1)
        async with shared.locked("alpha", holder="b", wait_timeout_s=0) as other:
            assert other.token > lock.token


async def test_a_lock_stores_its_default_where_the_key_is_absent(shared: AsyncDict[Any]) -> None:
    async with shared.locked("lock", holder="a"):
        assert await shared.get("lock") is True
    await shared.put("lock", "kept")
    async with shared.locked("lock", holder="a", default_value="new") as lock:
        assert lock.current_value == "kept"
    assert await shared.get("lock") == "kept"


async def test_a_lock_waits_until_it_is_given_back(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    async with AsyncRunner() as runner:
        async with shared.locked("lock", holder="a"):
            waiting = runner.start(shared.locked("lock", holder="b", poll_interval_s=NEVER_POLLS_S).__aenter__)
            await runner.until(lambda: waiting_on(client.store, lease_topic("shared", '"lock"')) == 1)
        assert (await waiting.result()).holder == "b"


async def test_a_lock_waits_until_the_lease_ends(client: ControlPlaneClient, shared: AsyncDict[Any], clock: FakeClock) -> None:
    await shared.acquire_lease("lock", holder="dead", lease_s=10)
    async with AsyncRunner() as runner:
        waiting = runner.start(shared.locked("lock", holder="b", poll_interval_s=NEVER_POLLS_S).__aenter__)
        await runner.until(lambda: waiting_on(client.store, lease_topic("shared", '"lock"')) == 1)
        clock.advance(10)
        assert (await waiting.result()).holder == "b"


async def test_a_lock_waits_no_longer_than_told(shared: AsyncDict[Any]) -> None:
    async with shared.locked("lock", holder="a"):
        with pytest.raises(LockTimeout, match="held by 'a'"):
            await shared.locked("lock", holder="a", wait_timeout_s=0.01).__aenter__()
        with pytest.raises(TimeoutError):
            await shared.locked("lock", holder="a", wait_timeout_s=0).__aenter__()


async def test_closing_ends_who_waits_for_a_lock(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    await shared.acquire_lease("lock", holder="a")
    async with AsyncRunner() as runner:
        waiting = runner.start(shared.locked("lock", holder="b").__aenter__)
        await runner.until(lambda: waiting_on(client.store, lease_topic("shared", '"lock"')) == 1)
        client.close()
        with pytest.raises(Closed):
            await waiting.result()


async def test_there_is_one_leader_until_it_releases(shared: AsyncDict[Any]) -> None:
    leader = await shared.try_become_leader("leader", holder="a", lease_s=30)
    assert leader is not None
    assert await shared.try_become_leader("leader", holder="a", lease_s=30) is None
    await leader.release()
    assert await shared.try_become_leader("leader", holder="b", lease_s=30) is not None


async def test_a_leader_may_be_renewed_in_the_background(shared: AsyncDict[Any], clock: FakeClock) -> None:
    leader = await shared.try_become_leader("leader", holder="a", lease_s=30, auto_renew=True)
    assert leader is not None
    ends_at = leader.expires_at
    async with AsyncRunner() as runner:
        clock.advance(10)
        await runner.until(lambda: leader.expires_at != ends_at)
    await leader.release()


async def test_dropping_the_dict_ends_its_leases_and_clearing_does_not(shared: AsyncDict[Any]) -> None:
    await shared.put("alpha", 1)
    lease = await shared.acquire_lease("alpha", holder="a")
    await shared.clear()
    await lease.renew()
    await shared.delete()
    with pytest.raises(LeaseLost):
        await lease.renew()


@pytest.mark.parametrize(
    "how",
    [
        {"lease_s": 0},
        {"lease_s": -1.0},
        {"lease_s": math.nan},
        {"lease_s": 10, "renew_interval_s": 10},
        {"renew_interval_s": 0},
        {"max_hold_s": 0},
        {"holder": ""},
    ],
)
async def test_bad_terms_are_refused_before_anything_is_sent(shared: AsyncDict[Any], how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lease_s|renew_interval_s|max_hold_s|holder"):
        shared.lease("alpha", **({"holder": "a"} | how))
    assert await shared.lease_holder("alpha") is None


class Job(msgspec.Struct):
    image: str


async def test_a_typed_dict_has_locks_too(client: ControlPlaneClient) -> None:
    jobs = AsyncDict.from_name("jobs", type=Job, client=client)
    async with jobs.locked("a", holder="w") as lock:
        assert lock.current_value is None
    async with jobs.locked("a", holder="w", default_value=Job("x.png")) as lock:
        assert lock.current_value == Job("x.png")
    with pytest.raises(TypeError, match="is not Job"):
        jobs.locked("a", holder="w", default_value="text")


async def test_a_value_that_cannot_be_read_gives_the_lease_back(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    await shared.put("alpha", "text")
    with pytest.raises(ValueError, match="does not fit Job"):
        await AsyncDict.from_name("shared", type=Job, client=client).acquire_lease("alpha", holder="w")
    assert await shared.lease_holder("alpha") is None


async def test_the_twin_of_a_lease_holds_the_same(shared: AsyncDict[Any]) -> None:
    lease = await shared.acquire_lease("alpha", holder="a")
    twin = lease.aio
    await lease.release()
    assert twin.lost
