"""Waiting in one process: crowds of threads and tasks take all that is put."""

import asyncio
import contextlib
import math
import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

import pytest

from holdfast.errors import Closed
from holdfast.stores.waiting.waiters import Waiters
from tests.stores.waiting.waiters import PATIENCE_S, Deaf, Selfish, settle


class Shelf:
    """A counter of items, which is what the flows of these tests ask."""

    def __init__(self, topic: str, patience_s: float = PATIENCE_S) -> None:
        self.topic = topic
        self.patience_s = patience_s
        self.items = 0
        self.taken = 0
        # Guards the items and the number taken.
        self.is_empty = threading.Condition()

    def put(self, count: int) -> None:
        with self.is_empty:
            self.items += count

    def take(self) -> bool:
        with self.is_empty:
            if self.items:
                self.items -= 1
                self.taken += 1
                if not self.items:
                    self.is_empty.notify_all()
                return True
        # Gives way to other threads, so that many a put falls between an ask and its wait.
        time.sleep(0)
        return False

    def wait_until_empty(self) -> None:
        with self.is_empty:
            assert self.is_empty.wait_for(lambda: not self.items, self.patience_s), "a wake-up was lost"


def put_in_turns(waiters: Waiters, shelf: Shelf, seed: int, total: int) -> None:
    chance = random.Random(seed)
    while total:
        count = min(total, chance.randint(1, 8))
        shelf.put(count)
        waiters.hint(shelf.topic, count)
        total -= count
        shelf.wait_until_empty()


def take_in_a_thread(waiters: Waiters, shelf: Shelf, timeouts_s: list[float], seed: int) -> None:
    chance = random.Random(seed)
    with contextlib.suppress(Closed):
        while True:
            with waiters.mark(shelf.topic) as mark:
                while not shelf.take():
                    waiters.wait(mark, chance.choice(timeouts_s))
                mark.used()


async def take_in_a_task(waiters: Waiters, shelf: Shelf) -> None:
    with contextlib.suppress(Closed):
        while True:
            with waiters.mark(shelf.topic) as mark:
                while not shelf.take():
                    await waiters.wait_async(mark, math.inf)
                mark.used()


def take_in_tasks(waiters: Waiters, shelf: Shelf, count: int) -> None:
    async def main() -> None:
        await asyncio.gather(*(take_in_a_task(waiters, shelf) for _ in range(count)))

    asyncio.run(main())


def run_all(calls: Iterable[Callable[[], object]]) -> list[Future[None]]:
    def run(call: Callable[[], object], done: Future[None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - the test raises it
            done.set_exception(error)
        else:
            done.set_result(None)

    futures: list[Future[None]] = []
    for call in calls:
        futures.append(Future())
        threading.Thread(target=run, args=(call, futures[-1]), daemon=True).start()
    return futures


def finish(waiters: Waiters, putters: list[Future[None]], takers: list[Future[None]]) -> None:
    try:
        for putter in putters:
            putter.result(2 * PATIENCE_S)
    finally:
        waiters.close()
    for taker in takers:
        taker.result(PATIENCE_S)
    assert waiters.topics() == []


@pytest.mark.parametrize("timeouts_s", [[math.inf], [math.inf, 0.0005]])
def test_a_crowd_of_threads_and_tasks_takes_all_that_is_put(timeouts_s: list[float]) -> None:
    waiters, shelf = Waiters(), Shelf("shelf")
    takers = run_all(partial(take_in_a_thread, waiters, shelf, timeouts_s, seed) for seed in range(4))
    takers += run_all(partial(take_in_tasks, waiters, shelf, 10) for _ in range(2))
    putters = run_all(partial(put_in_turns, waiters, shelf, seed, 5_000) for seed in range(4))
    finish(waiters, putters, takers)
    assert (shelf.taken, shelf.items) == (20_000, 0)


def lone_takers_take_all_that_is_put(waiters: Waiters, patience_s: float) -> None:
    """One taker a topic: nobody else makes good for a wake-up that it misses."""
    shelves = [Shelf(f"shelf {number}", patience_s) for number in range(4)]
    takers = run_all(partial(take_in_a_thread, waiters, shelf, [math.inf], 0) for shelf in shelves[:2])
    takers += run_all(partial(take_in_tasks, waiters, shelf, 1) for shelf in shelves[2:])
    putters = run_all(partial(put_in_turns, waiters, shelf, 0, 5_000) for shelf in shelves)
    finish(waiters, putters, takers)
    assert [shelf.taken for shelf in shelves] == [5_000] * 4


def test_a_lone_taker_misses_no_wake_up() -> None:
    lone_takers_take_all_that_is_put(Waiters(), PATIENCE_S)


def test_control_a_lone_taker_that_misses_a_wake_up_is_found_out() -> None:
    with pytest.raises(AssertionError, match="lost"):
        lone_takers_take_all_that_is_put(Deaf(), patience_s=0.5)


def cancelled_tasks_never_swallow_a_hint(waiters: Waiters, rounds: int) -> None:
    """Each round one item and one hint come from another thread while the loop cancels the task that the hint is for."""
    shelf = Shelf("shelf")

    async def take_once() -> None:
        with waiters.mark("shelf") as mark:
            while not shelf.take():
                await waiters.wait_async(mark, math.inf)
            mark.used()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(rounds):
            tasks = [asyncio.create_task(take_once()) for _ in range(3)]
            await settle()
            shelf.put(1)
            hint = loop.run_in_executor(None, waiters.hint, "shelf")
            tasks[0].cancel()
            await hint
            await settle()
            left = shelf.items
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert left == 0, "a wake-up was lost"

    asyncio.run(main())


def test_a_task_cancelled_while_another_thread_hints_never_swallows_the_hint() -> None:
    cancelled_tasks_never_swallow_a_hint(Waiters(), 1_000)


def test_control_tasks_that_swallow_hints_are_found_out() -> None:
    with pytest.raises(AssertionError, match="lost"):
        cancelled_tasks_never_swallow_a_hint(Selfish(), 1_000)
