"""Waiting in one process: a wake-up that its waiter does not use goes to the next."""

import math
import threading

import pytest

from holdfast.stores.waiting.waiters import Waiters
from tests.stores.waiting.waiters import PATIENCE_S, Clock, Selfish, Tasks, Watched, settle, thread_asleep


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
