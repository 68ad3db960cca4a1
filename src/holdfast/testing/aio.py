"""An async store that looks like a sync one, so that one suite judges both faces."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed
from holdfast.stores import AsyncStore, Guarantees, StoreDefaults
from holdfast.stores.renewals import DirectRenewer
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")


class LoopStore(StoreDefaults):
    """Runs an async store on an event loop in a thread of its own; any thread may ask it."""

    def __init__(self, make: Callable[[], AsyncStore]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast-testing-loop", daemon=True)
        self._thread.start()
        # Guards _is_closed: nothing is left with a loop that is about to stop, where it would never end.
        self._lock = threading.Lock()
        self._is_closed = False
        try:
            self.store: AsyncStore = self._on_loop(make)
        except BaseException:
            self._stop()
            raise
        self.url: str = self.store.url
        self.limits: Limits = self.store.limits
        self.guarantees: Guarantees = self.store.guarantees
        self.waiters: Waiters = self.store.waiters

    def execute(self, command: Command[R]) -> R:
        return self._run(lambda: self.store.execute(command))

    def mark(self, topic: str) -> Mark:
        return self._on_loop(lambda: self.store.mark(topic))

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self._run(lambda: self.store.wait(mark, timeout_s, due_in_s, poll_s))

    def for_tasks(self) -> AsyncStore:
        return self.store

    def wall_offset_us(self) -> int:
        return self.store.wall_offset_us()

    def for_renewals(self) -> DirectRenewer:
        return DirectRenewer(self)

    def close(self) -> None:
        if not self._is_closed:
            self._run(self.store.aclose)
            with self._lock:
                self._is_closed = True
            # What is left are waits that `aclose` ended: they answer their callers before the loop stops.
            asyncio.run_coroutine_threadsafe(_others_done(), self._loop).result()
            self._stop()

    def _on_loop(self, act: Callable[[], R]) -> R:
        async def acting() -> R:
            return act()

        return self._run(acting)

    def _run(self, make: Callable[[], Coroutine[Any, Any, R]]) -> R:
        with self._lock:
            if self._is_closed:
                raise Closed("The store was closed; open it again.")
            future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        return future.result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _others_done() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
