"""Waiting in one process: closing, several event loops, forks and finalizers."""

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from holdfast.commands.hints import ALL
from holdfast.errors import Closed
from holdfast.stores.waiting.waiters import Waiters
from tests.stores.waiting.waiters import PATIENCE_S, Clock, Tasks, Watched, settle, thread_asleep


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
