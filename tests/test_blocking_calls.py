"""Calling what blocks, from tasks."""

import asyncio
import threading

import pytest

from holdfast.process.blocking_calls import async_call

pytestmark = pytest.mark.anyio


async def test_a_call_returns_and_raises_what_the_function_does() -> None:
    assert await async_call(max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        await async_call(lambda: 1 / 0)


async def test_what_a_thread_took_for_a_cancelled_task_is_undone() -> None:
    begun, goes_on, undone = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def take() -> str:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait()
        return "taken"

    calling = asyncio.create_task(async_call(take, undo=undone.append))
    await begun.wait()
    calling.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert undone == ["taken"]
