"""Limiters: a rate that all who use the store keep together."""

import math

import pytest

from holdfast import ControlPlaneClient, Rate
from holdfast._async.handles.limiter import AsyncLimiter
from holdfast.commands import Length
from holdfast.errors import RateLimited
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_burst_is_let_through_and_what_follows_is_told_when(client: ControlPlaneClient, clock: FakeClock) -> None:
    limiter = AsyncLimiter("api", Rate(60, per_s=60.0, burst=3), client=client)
    for _ in range(3):
        await limiter.acquire()
    with pytest.raises(RateLimited) as refused:
        await limiter.acquire(cost=2)
    assert refused.value.due_in_s == 2.0
    clock.advance(2)
    await limiter.acquire(cost=2)


async def test_each_key_has_a_rate_of_its_own(client: ControlPlaneClient) -> None:
    limiter = AsyncLimiter("api", Rate(1, per_s=60.0), client=client)
    await limiter.acquire(key=("tenant", 1))
    await limiter.acquire(key=("tenant", 2))
    with pytest.raises(RateLimited):
        await limiter.acquire(key=("tenant", 1), timeout_s=1.0)


async def test_it_waits_until_it_is_due() -> None:
    client = ControlPlaneClient("memory://")
    limiter = AsyncLimiter("api", Rate(100, per_s=1.0), client=client)
    for _ in range(3):
        await limiter.acquire(timeout_s=math.inf)
    assert await client.async_store.execute(Length("api")) == 1


async def test_what_could_never_come_is_refused_as_an_argument(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="burst"):
        await AsyncLimiter("api", Rate(1, per_s=1.0, burst=2), client=client).acquire(cost=3)
    with pytest.raises(ValueError, match="microsecond"):
        Rate(2, per_s=0.000001)
    with pytest.raises(ValueError, match="thirty years"):
        Rate(1, per_s=3e9, burst=1_000)


async def test_a_unit_is_never_shorter_than_its_rate() -> None:
    assert [Rate(3, per_s=1.0).interval_us, Rate(60, per_s=60.0).interval_us, Rate(7, per_s=0.00002).interval_us] == [333_334, 1_000_000, 3]
