"""The event loop of this thread, and one for a coroutine, which Ctrl-C may end at any moment."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def run_coroutine(coroutine: Coroutine[Any, Any, R], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> R:
    """Run it as `asyncio.run` does, without a warning when an interrupt comes before it has begun."""
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(coroutine)
    finally:
        coroutine.close()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of this thread, if it runs one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
