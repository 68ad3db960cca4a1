"""What the tasks of one event loop ask of a file, gathered into batches that share a commit.

The next batch leaves one turn of the loop after the answers of the last arrived: by then the tasks that were answered have asked again.
What is large has a commit to itself, and while small commands come as well it has a part of the time only: nobody waits for more than one
large command of another, and few wait for any.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from holdfast.errors import Closed
from holdfast.stores.committing import Job

REST: Final = 20
"""So many times as long as a large command took longer than small ones, the next is held back for them."""

Asked = dict[Job, "asyncio.Future[None]"]


class Gatherer:
    """Gathers the jobs of one event loop; used on that loop alone."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        submit: Callable[[list[Job], Callable[[], object]], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.loop = loop
        self._submit = submit
        self._now = now
        self._small: Asked = {}
        self._large: Asked = {}
        self._is_away = False
        self._has_small_come = False  # ... since the last that was large left.
        self._was_large = False  # The last that left.
        self._small_s = 0.0  # How long the last batch of small ones took.
        self._held_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, job: Job, *, is_large: bool) -> "asyncio.Future[None]":
        """Let the job leave with the next batch, or, if it is large, with one of its own; the future is done when the job is."""
        future: asyncio.Future[None] = self.loop.create_future()
        if is_large:
            self._large[job] = future
        else:
            self._small[job] = future
            self._has_small_come = True
        if not self._is_away:
            self._is_away = True
            self.loop.call_soon(self._dispatch)
        return future

    def withdraw(self, job: Job) -> bool:
        """Forget a job that has not left yet; answer whether that is so."""
        return (self._small.pop(job, None) or self._large.pop(job, None)) is not None

    async def close(self) -> None:
        """Do nothing: what was asked is still done, and nothing else is kept."""

    def abandon(self) -> None:
        """Do nothing: the writer sees that the loop is closed."""

    def _dispatch(self) -> None:
        is_large = self._is_turn_of_large()
        asked = self._next_large() if is_large else self._all_small()
        if not asked:
            self._is_away = False
            self._come_back_for_large()
            return
        jobs, futures, left_at = list(asked), list(asked.values()), self._now()
        come_back = self._come_back_large if is_large else self._come_back
        try:
            self._submit(jobs, lambda: self.loop.call_soon_threadsafe(come_back, futures, left_at))
        except Closed as error:
            for job in jobs:
                job.fail(error)
            self._come_back(futures, left_at)

    def _is_turn_of_large(self) -> bool:
        return bool(self._large) and (not self._has_small_come or (not self._was_large and self._now() >= self._held_until))

    def _next_large(self) -> Asked:
        self._was_large, self._has_small_come = True, bool(self._small)
        job = next(iter(self._large))
        return {job: self._large.pop(job)}

    def _all_small(self) -> Asked:
        self._was_large = False
        asked, self._small = self._small, {}
        return asked

    def _come_back_for_large(self) -> None:
        if self._large and self._timer is None:
            self._timer = self.loop.call_later(max(0.0, self._held_until - self._now()), self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        if not self._is_away:
            self._is_away = True
            self._dispatch()

    def _come_back(self, futures: "list[asyncio.Future[None]]", left_at: float) -> None:
        self._small_s = self._now() - left_at
        tell(futures)
        self.loop.call_soon(self._dispatch)

    def _come_back_large(self, futures: "list[asyncio.Future[None]]", left_at: float) -> None:
        now = self._now()
        self._held_until = now + REST * max(0.0, now - left_at - self._small_s)
        self._dispatch()  # Who came behind it has waited long enough.
        tell(futures)


def tell(futures: "list[asyncio.Future[None]]") -> None:
    """Tell who asked that it is done."""
    for future in futures:
        if not future.done():
            future.set_result(None)
