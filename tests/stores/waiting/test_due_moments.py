"""Waiting in one process: one waiter keeps the moment at which something comes due, and hands it over."""

import asyncio
import math
from collections.abc import Callable

import pytest

from holdfast.stores.waiting.line import Line
from holdfast.stores.waiting.waiters import Waiters, waiters_for
from holdfast.testing import FakeClock
from tests.stores.waiting.waiters import PATIENCE_S, Clock, Selfish, Tasks, Watched, settle


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
