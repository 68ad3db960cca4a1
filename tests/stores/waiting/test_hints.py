"""Waiting in one process: whom a hint wakes, in which order, and that none is lost."""

import asyncio
import contextlib
import math
import threading

import pytest

from holdfast.commands.hints import ALL
from holdfast.stores.waiting.waiters import EVERYTHING, Waiters
from tests.stores.waiting.waiters import PATIENCE_S, Deaf, Tasks, Watched, settle, thread_asleep


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


def test_a_mark_that_begins_anew_waits_for_what_comes_after() -> None:
    waiters = Watched()
    with waiters.mark("jobs") as mark:
        for _ in range(2):  # Before it stands in line, and then.
            waiters.hint("jobs")
            mark.begin_anew()
            waiters.wait(mark, 0.01)
            assert waiters.naps.qsize() == 1
            waiters.naps.get()
        mark.begin_anew()
        waiters.hint("jobs")
        waiters.wait(mark, math.inf)
        assert waiters.naps.empty()


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
