"""Waiters that a test can look into, and two broken ones."""

import asyncio
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Self

from holdfast.errors import Closed
from holdfast.stores.waiting.alarms import TaskAlarm, ThreadAlarm
from holdfast.stores.waiting.line import Line, WokenBy
from holdfast.stores.waiting.waiters import Mark, Waiters

PATIENCE_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Watched(Waiters):
    """Tells the test who falls asleep and whose alarm rings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.naps: queue.SimpleQueue[Mark] = queue.SimpleQueue()
        self.rung: list[Mark] = []

    def _stand_in_line(
        self, mark: Mark, alarm: ThreadAlarm | TaskAlarm, timeout_s: float, due_in_s: float | None, poll_s: float | None
    ) -> bool:
        sleeps = super()._stand_in_line(mark, alarm, timeout_s, due_in_s, poll_s)
        if sleeps:
            self.naps.put(mark)
        return sleeps

    def _ring(self, to_ring: Iterable[Mark]) -> None:
        to_ring = list(to_ring)
        self.rung += to_ring
        super()._ring(to_ring)


class Deaf(Watched):
    """Broken: forgets a hint that came before the wait."""

    def _is_stale(self, mark: Mark, line: Line | None) -> bool:
        return False


class Selfish(Watched):
    """Broken: keeps a wake-up that was not used."""

    def _pass_on(self, line: Line, woken_by: WokenBy) -> list[Mark]:
        return []


async def settle() -> None:
    """Let every task of the loop run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


class Tasks:
    """Tasks that wait once each, and say so when they are back."""

    def __init__(self, waiters: Waiters) -> None:
        self.waiters = waiters
        self.back: list[str] = []
        self.marks: dict[str, Mark] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def start(
        self,
        *names: str,
        topic: str = "jobs",
        timeout_s: float = math.inf,
        due_in_s: float | None = None,
        poll_s: float | None = None,
        stays: bool = False,
    ) -> None:
        async def run(name: str) -> None:
            mark = self.marks[name]
            try:
                await self.waiters.wait_async(mark, timeout_s, due_in_s=due_in_s, poll_s=poll_s)
                self.back.append(name)
            finally:
                if not stays:
                    mark.leave()

        for name in names:
            self.marks[name] = self.waiters.mark(topic)
            self.tasks[name] = asyncio.create_task(run(name))
            await settle()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        for mark in self.marks.values():
            mark.leave()


def thread_asleep(waiters: Watched, topic: str = "jobs", *, stays: threading.Event | None = None) -> Future[None]:
    """A thread that has fallen asleep on the topic; its future is done when the wait has returned."""
    done: Future[None] = Future()

    def run() -> None:
        with waiters.mark(topic) as mark:
            try:
                waiters.wait(mark, math.inf)
            except Closed as closed:
                done.set_exception(closed)
            else:
                done.set_result(None)
            if stays:
                stays.wait(PATIENCE_S)

    threading.Thread(target=run, daemon=True).start()
    waiters.naps.get(timeout=PATIENCE_S)
    return done
