"""Work beside a worker's own: a task for tasks, a thread for threads."""

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
