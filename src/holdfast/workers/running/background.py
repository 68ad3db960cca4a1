"""Background work of a worker: a task for tasks, a thread for threads."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class AsyncSide:
    """A task that ends when its work does."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._task = asyncio.create_task(work(), name=name)

    @property
    def is_over(self) -> bool:
        """Whether the work has ended."""
        return self._task.done()

    async def join(self) -> None:
        """Wait until the work has ended, and raise what it raised."""
        await self._task


class Side:
    """A thread that ends when its work does."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the work has ended."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Wait until the work has ended, and raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised where the work is joined
            self._error = error


class AsyncPause:
    """Sleeps in a task; `end` ends this sleep and every later one, from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Sleep no more."""
        self._loop.call_soon_threadsafe(self._ended.set)

    async def sleep(self, seconds: float) -> bool:
        """Whether it slept so long, and was not ended."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return True
        return False


class Pause:
    """Sleeps in a thread; `end` ends this sleep and every later one, from any thread."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def end(self) -> None:
        """Sleep no more."""
        self._ended.set()

    def sleep(self, seconds: float) -> bool:
        """Whether it slept so long, and was not ended."""
        return not self._ended.wait(seconds)
