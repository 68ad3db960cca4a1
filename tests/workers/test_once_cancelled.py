"""Runs of `Once` that are cancelled before their function was called leave their keys free, on every store."""

import asyncio
import random
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Once
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of

RUNS = 200


@pytest.mark.verify
@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "postgres", "redis", "http"])
async def test_what_was_cancelled_before_it_began_is_free_again(kind: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    called: set[int] = set()
    async with ControlPlaneClient.on(factory_of(kind, tmp_path).make(FakeClock())) as client:
        once = Once("pay", client=client).aio

        async def pay(number: int) -> int:
            called.add(number)
            await asyncio.sleep(0)
            return number

        for number in range(RUNS):
            run = asyncio.create_task(once.run(number, lambda number=number: pay(number)))  # type: ignore[misc]
            await asyncio.sleep(chance.uniform(0.0, 0.004))
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
        never_called = set(range(RUNS)) - called
        assert never_called, "no run was cancelled before it began: the test shows nothing"
        async with asyncio.timeout(60.0):
            for number in never_called:  # What a cancelled caller got is taken back beside it.
                while await once.get(number) is not None:  # noqa: ASYNC110 - nothing rings when it is done
                    await asyncio.sleep(0.01)
        assert [await once.run(number, lambda number=number: pay(number)) for number in sorted(never_called)] == sorted(never_called)  # type: ignore[misc]
