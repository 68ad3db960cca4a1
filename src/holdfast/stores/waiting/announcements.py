"""Waiting until a topic was announced to a server, in a thread or a task."""

import asyncio
from concurrent import futures
from concurrent.futures import Future


def wait_for(announced: "Future[None]", timeout_s: float) -> None:
    """Block this thread until it is done, for so long at most."""
    futures.wait([announced], timeout_s)


async def wait_for_async(announced: "Future[None]", timeout_s: float) -> None:
    """Suspend this task as `wait_for` blocks a thread."""
    await asyncio.wait([asyncio.wrap_future(announced)], timeout=timeout_s)
