"""Polls, for waits without wake-ups."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.process.blocking_calls import async_sleep

R = TypeVar("R")


async def poll(ask: Callable[[], Awaitable[R | None]], timeout_s: float | None, poll_s: float) -> R | None:
    """Ask until there is an answer: once without a time-out, else for so long in all. None where none came."""
    deadline = time.monotonic() + (timeout_s or 0.0)
    while (answer := await ask()) is None:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            return None
        await async_sleep(min(poll_s, remaining_s))
    return answer
