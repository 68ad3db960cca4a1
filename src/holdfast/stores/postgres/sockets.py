"""Waits for a server on its socket, in a thread or a task, with a deadline.

What is said to the server is written as psycopg's generators are: they yield what the socket is to become ready for, and are sent what it
is. psycopg's own loops wait as long as the server is silent, and those for tasks lose cancellations (`asyncio.wait_for` before 3.12).
"""

import asyncio
import time
from typing import TypeVar

from psycopg import OperationalError
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait, wait

R = TypeVar("R")

LOOK_S = 0.1
"""How often a thread that waits looks at the time, and whether it was interrupted."""


class NoAnswer(OperationalError):  # noqa: N818 - as what becomes of a try, see `Lost`
    """The server was silent for too long; what it was asked it perhaps did."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"no reply in {timeout_s:.3g} s")


def run(steps: PQGen[R], fileno: int, timeout_s: float) -> R:
    """Take the steps in this thread."""
    return wait(_bounded(steps, timeout_s), fileno, interval=min(timeout_s, LOOK_S))


def _bounded(steps: PQGen[R], timeout_s: float) -> PQGen[R]:
    end = time.monotonic() + timeout_s
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= end:
                raise NoAnswer(timeout_s)
            wanted = steps.send(ready)
    except StopIteration as done:
        result: R = done.value
        return result


async def run_async(steps: PQGen[R], fileno: int, timeout_s: float) -> R:
    """Take the steps in this task; its event loop looks after the socket only meanwhile."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    try:
        wanted = next(steps)
        while True:
            ready = await _ready(loop, fileno, wanted, end)
            if not ready:
                raise NoAnswer(timeout_s)
            wanted = steps.send(ready)
    except StopIteration as done:
        result: R = done.value
        return result


async def _ready(loop: asyncio.AbstractEventLoop, fileno: int, wanted: Wait, end: float) -> Ready:
    """Which of what is wanted the socket is ready for, none at the end."""
    found = loop.create_future()

    def tell(ready: Ready) -> None:
        if not found.done():
            found.set_result(ready)

    if wanted & Wait.R:
        loop.add_reader(fileno, tell, Ready.R)
    if wanted & Wait.W:
        loop.add_writer(fileno, tell, Ready.W)
    late = loop.call_at(end, tell, Ready.NONE)
    try:
        ready: Ready = await found
        return ready
    finally:
        late.cancel()
        if wanted & Wait.R:
            loop.remove_reader(fileno)
        if wanted & Wait.W:
            loop.remove_writer(fileno)
