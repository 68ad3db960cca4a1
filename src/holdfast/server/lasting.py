"""Requests that last: each ends when its work does, when its client hangs up, or when the server ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from holdfast.server.asgi import Receive

R = TypeVar("R")


class Lasting:
    """The requests of one server that wait for something."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_ending = False

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, receive: Receive, work: Coroutine[Any, Any, R]) -> R | None:
        """What the work answers; None if the client hung up or the server ends, and then the work was cancelled."""
        if self._is_ending:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._tasks.add(task)
        watch = asyncio.create_task(_cancel_when_gone(receive, task))
        try:
            await asyncio.wait([task])
        finally:
            watch.cancel()
            task.cancel()
            self._tasks.discard(task)
        return None if task.cancelled() else task.result()

    def end(self) -> None:
        """Cancel the work of all of them; from now on none lasts."""
        self._is_ending = True
        for task in list(self._tasks):
            task.cancel()


async def _cancel_when_gone(receive: Receive, task: "asyncio.Task[Any]") -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
