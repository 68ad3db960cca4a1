"""Collects the commands of the tasks of one event loop into batches that share a commit.

The next batch leaves one turn of the loop after the answers of the last arrived: by then the tasks that were answered have asked again.
What is large has a commit to itself, and while small commands come as well each caller's has a part of the time only: no one waits for more
than one large command of another, and few wait for any. Callers take turns with theirs, and each rests for its own alone.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from holdfast.errors import Closed
from holdfast.stores.group_commit import Job

REST: Final = 20
"""So many times as long as a large command took longer than small ones, its caller's next is held back for them."""

REST_MOST_S: Final = 2.0
"""And no longer: it may have taken so long because the machine stood still, or had other work."""

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
        self._large: dict[str, Asked] = {}  # Of each caller, in the order of their turns.
        self._is_away = False
        self._has_small_come = False  # ... since the last that was large left.
        self._was_large = False  # The last that left.
        self._small_s = 0.0  # How long the last batch of small ones took.
        self._held_until: dict[str, float] = {}  # Of each caller who rests.
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, job: Job, *, is_large: bool) -> "asyncio.Future[None]":
        """Let the job leave with the next batch, or, if it is large, with one of its own; the future is done when the job is."""
        future: asyncio.Future[None] = self.loop.create_future()
        if is_large:
            self._large.setdefault(job.request.whose, {})[job] = future
        else:
            self._small[job] = future
            self._has_small_come = True
        if not self._is_away:
            self._is_away = True
            self.loop.call_soon(self._dispatch)
        return future

    def withdraw(self, job: Job) -> bool:
        """Forget a job that has not left yet; return whether that is so."""
        if self._small.pop(job, None) is not None:
            return True
        whose = job.request.whose
        large = self._large.get(whose, {})
        is_here = large.pop(job, None) is not None
        if is_here and not large:
            del self._large[whose]
        return is_here

    async def close(self) -> None:
        """Do nothing: what was asked is still done, and nothing else is kept."""

    def abandon(self) -> None:
        """Do nothing: the writer sees that the loop is closed."""

    def _dispatch(self) -> None:
        whose = self._whose_turn()
        asked = self._all_small() if whose is None else self._next_large(whose)
        if not asked:
            self._is_away = False
            self._come_back_for_large()
            return
        jobs, futures, left_at = list(asked), list(asked.values()), self._now()
        come_back = self._come_back if whose is None else partial(self._come_back_large, whose)
        try:
            self._submit(jobs, lambda: self.loop.call_soon_threadsafe(come_back, futures, left_at))
        except Closed as error:
            for job in jobs:
                job.fail(error)
            self._come_back(futures, left_at)

    def _whose_turn(self) -> str | None:
        """The caller whose large command leaves next; None if it is the turn of the small ones."""
        if not self._large:
            return None
        if not self._has_small_come:
            return next(iter(self._large))
        if self._was_large:
            return None
        now = self._now()
        return next((whose for whose in self._large if self._held_until.get(whose, 0.0) <= now), None)

    def _next_large(self, whose: str) -> Asked:
        self._was_large, self._has_small_come = True, bool(self._small)
        large = self._large.pop(whose)
        job = next(iter(large))
        asked = {job: large.pop(job)}
        if large:
            self._large[whose] = large  # Behind the others.
        return asked

    def _all_small(self) -> Asked:
        self._was_large = False
        asked, self._small = self._small, {}
        return asked

    def _come_back_for_large(self) -> None:
        if self._large and self._timer is None:
            first = min(self._held_until.get(whose, 0.0) for whose in self._large)
            self._timer = self.loop.call_later(max(0.0, first - self._now()), self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        if not self._is_away:
            self._is_away = True
            self._dispatch()

    def _come_back(self, futures: "list[asyncio.Future[None]]", left_at: float) -> None:
        self._small_s = self._now() - left_at
        tell(futures)
        self.loop.call_soon(self._dispatch)

    def _come_back_large(self, whose: str, futures: "list[asyncio.Future[None]]", left_at: float) -> None:
        now = self._now()
        self._held_until = {each: until for each, until in self._held_until.items() if until > now}
        self._held_until[whose] = now + min(REST * max(0.0, now - left_at - self._small_s), REST_MOST_S)
        self._dispatch()  # Who came behind it has waited long enough.
        tell(futures)


def tell(futures: "list[asyncio.Future[None]]") -> None:
    """Tell who asked that it is done."""
    for future in futures:
        if not future.done():
            future.set_result(None)
