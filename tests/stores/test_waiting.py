"""Waiting in one process: who is woken, by what, and in which order."""

import asyncio
import contextlib
import math
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Self

import pytest

from holdfast.errors import Closed
from holdfast.stores.alarms import TaskAlarm, ThreadAlarm
from holdfast.stores.lines import Line, WokenBy
from holdfast.stores.waiting import ALL, EVERYTHING, Mark, Waiters, waiters_for
from holdfast.testing import FakeClock

PATIENCE_S = 30.0


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

    def _is_stale(self, mark: Mark, line: Line) -> bool:
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


def returns_at_once_when_the_hint_came_first(waiters: Watched) -> None:
    with waiters.mark("jobs") as mark:
        waiters.hint("jobs")
        waiters.wait(mark, 0.01)
        assert waiters.naps.empty()


def test_a_hint_between_mark_and_wait_is_not_lost() -> None:
    returns_at_once_when_the_hint_came_first(Watched())


def test_control_a_store_that_forgets_hints_before_the_wait_is_found_out() -> None:
    with pytest.raises(AssertionError):
        returns_at_once_when_the_hint_came_first(Deaf())


def test_a_hint_between_two_waits_is_not_lost() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, 0.0)
        waiters.hint("jobs")
        waiters.wait(mark, math.inf)
        assert waiters.naps.qsize() == 1


def test_a_hint_before_the_mark_does_not_end_the_wait() -> None:
    waiters = Watched()
    waiters.hint("jobs")
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, 0.001)
        assert waiters.naps.qsize() == 1


def test_hints_of_other_topics_end_no_wait_of_a_mark_in_line() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, 0.0)
        for number in range(5_000):
            waiters.hint(f"other {number}")
        waiters.wait(mark, 0.001)
        assert waiters.naps.qsize() == 2


def test_a_mark_that_was_left_and_is_waited_on_again_asks_first() -> None:
    waiters = Watched()
    mark = waiters.mark("jobs")
    waiters.wait(mark, 0.0)
    mark.leave()
    waiters.wait(mark, math.inf)
    mark.leave()
    assert waiters.topics() == []


@pytest.mark.anyio
async def test_a_woken_waiter_that_finds_nothing_sleeps_again_after_one_ask() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", stays=True)
        waiters.hint("jobs")
        await settle()
        assert tasks.back == ["a"]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(waiters.wait_async(tasks.marks["a"], math.inf), 0.001)
        assert waiters.naps.qsize() == 2


@pytest.mark.anyio
async def test_a_hint_wakes_as_many_as_it_counts_the_oldest_first() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", "c", "d", stays=True)
        waiters.hint("jobs", 1)
        await settle()
        assert tasks.back == ["a"]
        waiters.hint("jobs", 2)
        await settle()
        assert tasks.back == ["a", "b", "c"]
        assert waiters.waiting("jobs") == 1


def test_threads_are_woken_oldest_first() -> None:
    waiters, stays = Watched(), threading.Event()
    a, b, c = (thread_asleep(waiters, stays=stays) for _ in range(3))
    waiters.hint("jobs", 2)
    a.result(PATIENCE_S)
    b.result(PATIENCE_S)
    assert waiters.waiting("jobs") == 1
    waiters.hint("jobs", 5)
    c.result(PATIENCE_S)
    stays.set()


@pytest.mark.anyio
async def test_a_waiter_woken_for_nothing_comes_back_to_the_front() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", stays=True)
        waiters.hint("jobs")
        await settle()
        again = asyncio.create_task(waiters.wait_async(tasks.marks["a"], math.inf))
        await settle()
        waiters.hint("jobs")
        await again
        assert tasks.back == ["a"]


@pytest.mark.anyio
async def test_a_newcomer_whose_mark_was_stale_stands_behind_the_others() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("old", stays=True)
        with waiters.mark("jobs") as newcomer:
            waiters.hint("jobs", 0)
            await waiters.wait_async(newcomer, math.inf)
            wait = asyncio.create_task(waiters.wait_async(newcomer, math.inf))
            await settle()
            waiters.hint("jobs")
            await settle()
            assert tasks.back == ["old"]
            waiters.hint("jobs")
            await wait


@pytest.mark.anyio
async def test_waiters_of_other_topics_sleep_on() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", topic="jobs")
        await tasks.start("b", topic="mails")
        waiters.hint("jobs", ALL)
        await settle()
        assert tasks.back == ["a"]
        assert waiters.waiting("mails") == 1


@pytest.mark.anyio
async def test_a_hint_rings_one_alarm_among_a_thousand_waiters() -> None:
    waiters = Watched()
    marks = [waiters.mark("jobs") for _ in range(1_000)]
    waits = [asyncio.create_task(waiters.wait_async(mark, math.inf, poll_s=5.0)) for mark in marks]
    await settle()
    for mark in marks[:100]:
        waiters.hint("jobs")
        await settle()
        assert mark in waiters.rung
    # One more: the oldest kept the next due moment, and somebody else had to take that over.
    assert len(waiters.rung) == 101
    assert waiters.naps.qsize() == 1_000
    waiters.hint("jobs", ALL)
    await asyncio.gather(*waits)


@pytest.mark.anyio
async def test_a_hint_for_all_wakes_all() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", "c")
        waiters.hint("jobs", ALL)
        await settle()
        assert tasks.back == ["a", "b", "c"]


@pytest.mark.anyio
async def test_nothing_is_kept_of_topics_nobody_waits_on() -> None:
    waiters = Watched()
    for number in range(1_000):
        with waiters.mark(f"topic {number}"):
            waiters.hint(f"topic {number}")
    assert waiters.topics() == []
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b")
        assert waiters.topics() == ["jobs"]
    assert waiters.topics() == []


async def the_next_is_woken_when_one_is_cancelled_after_its_hint(waiters: Watched) -> None:
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b")
        waiters.hint("jobs")
        tasks.tasks["a"].cancel()
        await settle()
        assert tasks.back == ["b"]


@pytest.mark.anyio
async def test_a_wake_up_for_a_waiter_that_was_just_cancelled_goes_to_the_next() -> None:
    await the_next_is_woken_when_one_is_cancelled_after_its_hint(Watched())


@pytest.mark.anyio
async def test_control_a_waiter_that_keeps_its_wake_up_when_cancelled_is_found_out() -> None:
    with pytest.raises(AssertionError):
        await the_next_is_woken_when_one_is_cancelled_after_its_hint(Selfish())


@pytest.mark.anyio
async def test_a_wake_up_for_a_waiter_already_being_cancelled_goes_to_the_next() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b")
        tasks.tasks["a"].cancel()
        waiters.hint("jobs")
        await settle()
        assert tasks.back == ["b"]


def the_next_thread_is_woken_when_one_leaves(waiters: Watched) -> None:
    stays = threading.Event()
    a = thread_asleep(waiters, stays=stays)
    b = thread_asleep(waiters)
    waiters.hint("jobs")
    a.result(PATIENCE_S)
    assert waiters.waiting("jobs") == 1
    waiters.rung[0].leave()
    stays.set()
    assert waiters.waiting("jobs") == 0
    b.result(PATIENCE_S)


def test_a_thread_that_leaves_without_using_its_wake_up_passes_it_on() -> None:
    the_next_thread_is_woken_when_one_leaves(Watched())


def test_control_a_thread_that_keeps_its_wake_up_is_found_out() -> None:
    waiters = Selfish()
    with pytest.raises(AssertionError):
        the_next_thread_is_woken_when_one_leaves(waiters)
    waiters.close()


@pytest.mark.anyio
async def test_a_wake_up_that_was_used_is_not_passed_on() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", stays=True)
        waiters.hint("jobs")
        await settle()
        tasks.marks["a"].used()
        tasks.marks["a"].leave()
        await settle()
        assert tasks.back == ["a"]


@pytest.mark.anyio
async def test_whoever_found_something_and_left_more_wakes_the_next() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", stays=True)
        with waiters.mark("jobs") as mark:
            mark.used(more=True)
        await settle()
        assert tasks.back == ["a"]


@pytest.mark.anyio
async def test_a_hint_at_the_moment_of_the_time_out_is_passed_on() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", timeout_s=5.0)
        await tasks.start("b")
        clock.now_s += 5.0
        waiters.clock_moved()
        waiters.hint("jobs")
        await settle()
        assert tasks.back == ["a", "b"]


@pytest.mark.anyio
async def test_a_time_out_wakes_nobody_else() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", timeout_s=5.0)
        await tasks.start("b", "c")
        clock.now_s += 5.0
        waiters.clock_moved()
        await settle()
        assert tasks.back == ["a"]


def test_a_thread_returns_at_its_time_out() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, 0.001)
    assert waiters.topics() == []


@pytest.mark.anyio
async def test_a_task_returns_at_its_time_out() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        await waiters.wait_async(mark, 0.001)
    assert waiters.topics() == []


async def move(waiters: Waiters, clock: Clock, seconds: float) -> None:
    clock.now_s += seconds
    waiters.clock_moved()
    await settle()


@pytest.mark.anyio
async def test_one_waiter_wakes_at_the_due_moment() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start(*"abcdef", due_in_s=10.0, stays=True)
        await move(waiters, clock, 9.0)
        assert tasks.back == []
        await move(waiters, clock, 1.0)
        assert tasks.back == ["a"]


@pytest.mark.anyio
async def test_one_waiter_polls() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", "c", due_in_s=100.0, poll_s=30.0, stays=True)
        await move(waiters, clock, 30.0)
        assert tasks.back == ["a"]


def test_a_thread_that_keeps_the_due_moment_wakes_at_it() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, math.inf, due_in_s=0.001)
        assert mark.woken_by == "time"


@pytest.mark.anyio
async def test_due_moments_follow_the_clock_of_a_test_and_time_outs_do_not() -> None:
    clock = FakeClock()
    waiters = waiters_for(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", due_in_s=3_600.0, timeout_s=1_800.0, stays=True)
        clock.advance(3_599)
        await settle()
        assert tasks.back == []
        clock.advance(1)
        await settle()
        assert tasks.back == ["a"]


def test_whoever_asked_before_the_clock_of_a_test_moved_asks_again() -> None:
    clock = FakeClock()
    waiters = waiters_for(clock)
    with waiters.mark("jobs") as fresh, waiters.mark("jobs") as in_line:
        waiters.wait(in_line, 0.0)
        clock.advance(10)
        waiters.wait(fresh, math.inf, due_in_s=10.0)
        waiters.wait(in_line, math.inf, due_in_s=10.0)


def test_time_outs_are_real_under_the_clock_of_a_test() -> None:
    waiters = waiters_for(FakeClock())
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, 0.001, due_in_s=0.001)
        assert mark.woken_by is None


async def everyone_gets_busy_at_one_due_moment(waiters: Watched, clock: Clock) -> None:
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", "c", due_in_s=10.0, stays=True)
        await move(waiters, clock, 10.0)
        tasks.marks["a"].used()
        await settle()
        assert tasks.back == ["a", "b"]
        tasks.marks["b"].used()
        await settle()
        assert tasks.back == ["a", "b", "c"]


@pytest.mark.anyio
async def test_whoever_was_woken_by_time_and_found_something_wakes_the_next_and_so_on() -> None:
    clock = Clock()
    await everyone_gets_busy_at_one_due_moment(Watched(clock), clock)


@pytest.mark.anyio
async def test_control_a_chain_that_breaks_is_found_out() -> None:
    clock = Clock()
    with pytest.raises(AssertionError):
        await everyone_gets_busy_at_one_due_moment(Selfish(clock), clock)


@pytest.mark.anyio
async def test_whoever_was_woken_by_time_and_finds_nothing_ends_the_chain_and_keeps_the_next_moment() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", due_in_s=10.0, stays=True)
        await move(waiters, clock, 10.0)
        again = asyncio.create_task(waiters.wait_async(tasks.marks["a"], math.inf, due_in_s=7.0))
        await settle()
        assert tasks.back == ["a"]
        await move(waiters, clock, 7.0)
        assert again.done()
        assert tasks.back == ["a"]


@pytest.mark.anyio
async def test_whoever_was_woken_by_time_and_leaves_passes_it_on() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", due_in_s=10.0)
        await tasks.start("b", due_in_s=10.0, stays=True)
        await move(waiters, clock, 10.0)
        assert tasks.back == ["a", "b"]


@pytest.mark.anyio
async def test_a_hint_while_asking_after_the_due_moment_does_not_break_the_chain() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("a", "b", "c", due_in_s=10.0, stays=True)
        await move(waiters, clock, 10.0)
        waiters.hint("jobs", 0)
        await waiters.wait_async(tasks.marks["a"], math.inf, due_in_s=5.0)
        tasks.marks["a"].used()
        await settle()
        assert tasks.back == ["a", "b"]


async def someone_wakes_at_the_due_moment_after_the_keeper_left(leave: Callable[[Tasks], object]) -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("keeper", due_in_s=10.0, timeout_s=5.0)
        await tasks.start("b", "c", due_in_s=11.0, stays=True)
        leave(tasks)
        await move(waiters, clock, 5.0)
        tasks.back.clear()
        await move(waiters, clock, 5.0)
        assert len(tasks.back) == 1


def time_out(tasks: Tasks) -> None:
    """Nothing to do: the clock moves past its time-out."""


def cancel(tasks: Tasks) -> None:
    tasks.tasks["keeper"].cancel()


def find_something(tasks: Tasks) -> None:
    tasks.waiters.hint("jobs")
    tasks.marks["keeper"].used()


@pytest.mark.anyio
@pytest.mark.parametrize("leave", [time_out, cancel, find_something])
async def test_a_keeper_that_leaves_hands_over_its_due_moment(leave: Callable[[Tasks], object]) -> None:
    await someone_wakes_at_the_due_moment_after_the_keeper_left(leave)


@pytest.mark.anyio
@pytest.mark.parametrize("leave", [time_out, cancel, find_something])
async def test_control_a_due_moment_that_leaves_with_its_keeper_is_found_out(
    leave: Callable[[Tasks], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Line, "_hand_over", lambda _: [])
    with pytest.raises(AssertionError):
        await someone_wakes_at_the_due_moment_after_the_keeper_left(leave)


@pytest.mark.anyio
async def test_taking_over_the_due_moment_asks_the_store_nothing() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("keeper", due_in_s=10.0)
        await tasks.start("b", "c", due_in_s=11.0)
        tasks.tasks["keeper"].cancel()
        await settle()
        assert tasks.back == []
        assert waiters.waiting("jobs") == 2


@pytest.mark.anyio
async def test_a_waiter_with_an_earlier_due_moment_becomes_the_keeper() -> None:
    clock = Clock()
    waiters = Watched(clock)
    async with Tasks(waiters) as tasks:
        await tasks.start("later", due_in_s=10.0, stays=True)
        await tasks.start("sooner", due_in_s=3.0, stays=True)
        await move(waiters, clock, 3.0)
        assert tasks.back == ["sooner"]
        await move(waiters, clock, 7.0)
        assert tasks.back == ["sooner"]


def test_closing_ends_the_waits_of_threads() -> None:
    waiters = Watched()
    a, b = thread_asleep(waiters), thread_asleep(waiters, "mails")
    waiters.close()
    assert isinstance(a.exception(PATIENCE_S), Closed)
    assert isinstance(b.exception(PATIENCE_S), Closed)
    assert waiters.topics() == []


@pytest.mark.anyio
async def test_closing_ends_the_waits_of_tasks() -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("asleep", "woken")
        waiters.hint("jobs")
        waiters.close()
        for task in tasks.tasks.values():
            with pytest.raises(Closed):
                await task


def test_a_wait_after_closing_raises_at_once() -> None:
    waiters = Watched()
    mark = waiters.mark("jobs")
    waiters.close()
    waiters.hint("jobs")
    with pytest.raises(Closed):
        waiters.wait(mark, math.inf)
    with pytest.raises(Closed):
        asyncio.run(waiters.wait_async(mark, math.inf))


@contextlib.contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE_S)
    loop.close()


def test_a_hint_wakes_tasks_of_several_loops_and_a_thread() -> None:
    waiters = Watched()
    with loop_in_a_thread() as one, loop_in_a_thread() as other:
        waits: list[Future[None]] = []
        for loop in (one, other, one):
            waits.append(asyncio.run_coroutine_threadsafe(waiters.wait_async(waiters.mark("jobs"), math.inf), loop))
            waiters.naps.get(timeout=PATIENCE_S)
        waits.append(thread_asleep(waiters))
        waiters.hint("jobs", 4)
        for wait in waits:
            wait.result(PATIENCE_S)


@pytest.mark.anyio
async def test_a_hint_in_the_loop_of_the_waiter_takes_no_detour(monkeypatch: pytest.MonkeyPatch) -> None:
    waiters = Watched()
    async with Tasks(waiters) as tasks:
        await tasks.start("a")
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "call_soon_threadsafe", None)
            waiters.hint("jobs")
        await settle()
        assert tasks.back == ["a"]


def tasks_of_a_closed_loop(waiters: Waiters, count: int, due_in_s: float | None = None) -> list[asyncio.Task[None]]:
    async def go_to_sleep() -> list[asyncio.Task[None]]:
        waits = [waiters.wait_async(waiters.mark("jobs"), math.inf, due_in_s) for _ in range(count)]
        tasks = [asyncio.create_task(wait) for wait in waits]
        await settle()
        return tasks

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    tasks = loop.run_until_complete(go_to_sleep())
    loop.close()
    return tasks


def test_a_hint_for_tasks_of_a_closed_loop_goes_to_the_next_waiter() -> None:
    waiters = Watched()
    tasks = tasks_of_a_closed_loop(waiters, 2_000)
    thread = thread_asleep(waiters)
    waiters.hint("jobs")
    thread.result(PATIENCE_S)
    assert len(tasks) == 2_000


def test_the_due_moment_of_a_closed_loop_is_taken_over_by_the_next_who_asks() -> None:
    clock = Clock()
    waiters = Watched(clock)
    closed = tasks_of_a_closed_loop(waiters, 1, due_in_s=1.0)
    clock.now_s += 3.0

    async def ask_and_wait() -> None:
        async with Tasks(waiters) as tasks:
            await tasks.start("a", due_in_s=5.0)
            assert waiters._lines["jobs"].keeper is tasks.marks["a"]

    asyncio.run(ask_and_wait())
    assert len(closed) == 1


@pytest.mark.anyio
async def test_a_forked_child_starts_with_nobody_waiting_and_a_free_lock() -> None:
    waiters = Watched()
    forked = threading.Event()

    def hold_the_lock(held: Future[None]) -> None:
        with waiters._lock:
            held.set_result(None)
            forked.wait(PATIENCE_S)

    async with Tasks(waiters) as tasks:
        await tasks.start("a")
        held: Future[None] = Future()
        threading.Thread(target=hold_the_lock, args=(held,)).start()
        held.result(PATIENCE_S)
        waiters.reset()
        waiters.hint("jobs", ALL)
        assert waiters.topics() == []
        assert waiters.rung == []
        forked.set()


def test_a_mark_from_before_the_fork_asks_again_and_then_waits() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        waiters.wait(mark, 0.0)
        waiters.reset()
        waiters.wait(mark, math.inf)
        assert waiters.naps.qsize() == 1
        waiters.wait(mark, 0.001)
        assert waiters.naps.qsize() == 2
    assert waiters.topics() == []


def test_a_finalizer_may_leave_a_mark_inside_any_call() -> None:
    waiters = Watched()
    mark = waiters.mark("jobs")
    waiters.wait(mark, 0.0)
    finished = threading.Event()

    def leave_while_the_lock_is_held() -> None:
        with waiters._lock:
            mark.leave()
        finished.set()

    threading.Thread(target=leave_while_the_lock_is_held, daemon=True).start()
    assert finished.wait(PATIENCE_S)
    assert waiters.topics() == []


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


def test_when_hints_were_lost_everyone_asks_again() -> None:
    waiters = Waiters()
    early = waiters.mark("jobs")
    waiters.hint(EVERYTHING)
    waiters.wait(early, math.inf)  # Returns at once: the mark is stale.
    early.leave()
    woken = []
    threads = [threading.Thread(target=lambda topic=topic: woken.append(_wait_on(waiters, topic))) for topic in ("jobs", "other")]
    for thread in threads:
        thread.start()
    while waiters.waiting("jobs") + waiters.waiting("other") < 2:
        pass
    waiters.hint(EVERYTHING)
    for thread in threads:
        thread.join()
    assert sorted(woken) == ["jobs", "other"]


def _wait_on(waiters: Waiters, topic: str) -> str:
    with waiters.mark(topic) as mark:
        waiters.wait(mark, math.inf)
    return topic


def test_a_listener_is_told_of_every_hint_and_takes_nobodys_turn() -> None:
    waiters, told = Watched(), list[int]()
    stop = waiters.listen("a", told.append)
    mark = waiters.mark("a")
    waiter = threading.Thread(target=waiters.wait, args=(mark, PATIENCE_S))
    waiter.start()
    waiters.naps.get(timeout=PATIENCE_S)
    waiters.hint("a", 3)
    waiter.join(PATIENCE_S)
    assert mark.woken_by == "hint"
    waiters.hint("b")
    waiters.hint(EVERYTHING)
    assert told == [3, ALL]
    mark.leave()
    stop()
    stop()
    waiters.hint("a")
    assert told == [3, ALL]
    assert waiters.topics() == [], "a topic that nobody listens to is forgotten"


# Who is spared, and who is interrupted


def test_hints_are_spared_while_no_mark_is_out() -> None:
    waiters = Waiters()
    waiters.hint("jobs")
    assert not waiters.marked
    with waiters.mark("jobs") as first, waiters.mark("jobs"):
        assert len(waiters.marked) == 2
        first.leave()
        first.leave()
        assert len(waiters.marked) == 1
    assert not waiters.marked


def test_a_mark_that_was_left_and_is_waited_on_again_counts_again() -> None:
    waiters = Waiters()
    mark = waiters.mark("jobs")
    mark.leave()
    waiters.wait(mark, 0.0)
    assert waiters.marked, "hints are for it again"
    mark.leave()
    assert not waiters.marked


def test_a_nudged_wait_returns_and_a_later_one_does_not_begin() -> None:
    waiters = Watched()
    mark, returned = waiters.mark("jobs"), threading.Event()

    def wait() -> None:
        waiters.wait(mark, math.inf)
        returned.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert waiters.naps.get(timeout=PATIENCE_S) is mark
    mark.nudge()
    assert returned.wait(PATIENCE_S)
    thread.join()
    mark.nudge()
    waiters.wait(mark, math.inf)
    mark.leave()


@pytest.mark.anyio
async def test_a_nudged_keeper_leaves_its_due_moment_to_the_next() -> None:
    waiters = Waiters()
    keeper, other = waiters.mark("jobs"), waiters.mark("jobs")
    first = asyncio.create_task(waiters.wait_async(keeper, math.inf, due_in_s=0.01))
    second = asyncio.create_task(waiters.wait_async(other, PATIENCE_S))
    await asyncio.sleep(0)
    keeper.nudge()
    await first
    await second
    assert other.woken_by == "time"
