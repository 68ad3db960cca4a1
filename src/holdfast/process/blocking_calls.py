"""Calls blocking functions: in a thread for tasks, directly for threads."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

R = TypeVar("R")


async def async_call(function: Callable[..., R], *args: Any, undo: Callable[[R], object] | None = None) -> R:
    """Call a blocking function in a thread; if the caller is cancelled meanwhile, `undo` gets what it returned."""
    calling = asyncio.ensure_future(asyncio.to_thread(function, *args))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        # The thread goes on: what it takes must not stay taken.
        with suppress(Exception):
            returned = await calling
            if undo is not None:
                await asyncio.to_thread(undo, returned)
        raise


def call(function: Callable[..., R], *args: Any, undo: Callable[[R], object] | None = None) -> R:
    """Call a function; nothing can be undone, since nothing comes between."""
    del undo
    return function(*args)


async def async_sleep(seconds: float) -> None:
    """Let other tasks run for so long."""
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    """Let other threads run for so long."""
    time.sleep(seconds)
