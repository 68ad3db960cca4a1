"""Holding on while a body runs: cancellation, blocked loops and interpreters, Ctrl-C, forks."""

import asyncio
import ctypes
import gc
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast._async.handles.mapping import AsyncDict
from holdfast._sync.handles.lock import Lock
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient
from holdfast.commands import Command
from holdfast.errors import ClaimLost, LeaseLost
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from tests.runners import Runner

R = TypeVar("R")

LEASE_S = 0.3


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def client(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[ControlPlaneClient]:
    store = MemoryStore(clock=clock) if request.param == "memory" else SqliteStore(tmp_path / "store", clock=clock)
    with ControlPlaneClient.on(store) as made:
        yield made


@pytest.fixture
def shared(client: ControlPlaneClient) -> AsyncDict[Any]:
    return AsyncDict.from_name("shared", client=client)


# Tasks


async def lose_in(body: Callable[[], Awaitable[None]], shared: AsyncDict[Any], clock: FakeClock) -> None:
    async with shared.lease("a", holder="w", lease_s=10, auto_renew=False):
        clock.advance(10)
        await body()


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def go_on_anyway() -> None:
    with suppress(asyncio.CancelledError):
        await wait_for_ever()


async def fail_instead() -> None:
    try:
        await wait_for_ever()
    except asyncio.CancelledError:
        raise ZeroDivisionError from None


@pytest.mark.anyio
async def test_the_body_of_a_task_is_cancelled_when_its_lease_is_lost(shared: AsyncDict[Any], clock: FakeClock) -> None:
    with pytest.raises(LeaseLost) as lost:
        await lose_in(wait_for_ever, shared, clock)
    assert isinstance(lost.value.__cause__, asyncio.CancelledError)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.anyio
async def test_a_body_that_goes_on_after_its_cancellation_still_learns_of_the_loss(shared: AsyncDict[Any], clock: FakeClock) -> None:
    with pytest.raises(LeaseLost):
        await lose_in(go_on_anyway, shared, clock)
    await asyncio.sleep(0)


@pytest.mark.anyio
async def test_an_error_that_the_cancellation_led_to_passes_with_a_note(shared: AsyncDict[Any], clock: FakeClock) -> None:
    with pytest.raises(ZeroDivisionError) as failed:
        await lose_in(fail_instead, shared, clock)
    assert "is lost" in failed.value.__notes__[0]


async def hold_until_cancelled(shared: AsyncDict[Any], inside: asyncio.Event) -> None:
    async with shared.lease("a", holder="w", lease_s=600):
        inside.set()
        await asyncio.Event().wait()


@pytest.mark.anyio
async def test_a_cancelled_task_gives_back_what_it_held(shared: AsyncDict[Any]) -> None:
    inside = asyncio.Event()
    task = asyncio.create_task(hold_until_cancelled(shared, inside))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await shared.lease_holder("a") is None


@pytest.mark.anyio
async def test_a_cancellation_from_outside_is_not_taken_for_the_loss(shared: AsyncDict[Any], clock: FakeClock) -> None:
    inside = asyncio.Event()
    task = asyncio.create_task(hold_until_cancelled(shared, inside))
    await inside.wait()
    shared._reach(None, None).keepalive.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.anyio
async def test_a_task_cancelled_while_it_waits_for_a_lock_leaves_nothing_behind(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    held = await shared.acquire_lease("a", holder="first")
    waiting = asyncio.create_task(shared.locked("a", holder="second").__aenter__())
    for _ in range(10):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await held.release()
    assert await shared.lease_holder("a") is None


@pytest.mark.anyio
async def test_a_blocked_loop_loses_nothing_that_is_renewed(shared: AsyncDict[Any], clock: FakeClock) -> None:
    async with shared.lease("a", holder="w", lease_s=30) as lease:
        for _ in range(9):
            ends_at = lease.expires_at
            clock.advance(10)
            Runner().until(lambda ends_at=ends_at: lease.expires_at != ends_at)  # type: ignore[misc]
        lease.check()


class Hanging(MemoryStore):
    """A store that answers threads, so also the keepalive, no more once it hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()

    def execute(self, command: Command[R]) -> R:
        assert self.answers.wait(60)
        return super().execute(command)


async def hang_inside(store: Hanging, client: ControlPlaneClient) -> None:
    async with AsyncDict.from_name("shared", client=client).lease("a", holder="w", lease_s=LEASE_S):
        store.answers.clear()
        try:
            await wait_for_ever()
        finally:
            store.answers.set()


@pytest.mark.anyio
async def test_a_body_is_cancelled_in_time_even_while_the_store_hangs() -> None:
    store = Hanging()
    async with ControlPlaneClient.on(store) as client:
        with pytest.raises(LeaseLost):
            await hang_inside(store, client)


async def hang_for_ever(shared: AsyncDict[Any], inside: asyncio.Event) -> None:
    async with shared.lease("a", holder="w", lease_s=10, max_hold_s=5, renew_interval_s=7):
        inside.set()
        await wait_for_ever()


@pytest.mark.anyio
async def test_where_a_task_hangs_is_logged(shared: AsyncDict[Any], clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    inside = asyncio.Event()
    task = asyncio.create_task(hang_for_ever(shared, inside))
    await inside.wait()
    clock.advance(5)
    Runner().until(lambda: "max_hold_s=5" in caplog.text)
    assert "hang_for_ever" in caplog.text
    clock.advance(4)
    with pytest.raises(LeaseLost, match="key 'a' of dict 'shared'"):
        await task


# Workers that are blocked for three lease times


def block_the_thread() -> None:
    time.sleep(3 * LEASE_S)


def block_the_interpreter() -> None:
    """Sleep without letting go of the interpreter lock: no thread of this process runs, the keepalive neither."""
    ctypes.PyDLL(None).usleep(int(3 * LEASE_S * 1_000_000))


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://" if request.param == "memory" else f"{request.param}:///{tmp_path}/store") as made:
        yield made


def test_a_worker_whose_interpreter_was_blocked_is_fenced(real: ControlPlaneClient) -> None:
    jobs = Queue.from_name("jobs", client=real)
    jobs.put("job")
    context = jobs.claimed(claimer="slow", lease_s=LEASE_S)
    assert context.__enter__() == "job"
    block_the_interpreter()
    slow = context.claim
    assert slow is not None
    assert slow.lost
    other = jobs.claim(claimer="other", timeout_s=math.inf)
    assert other is not None
    assert other.token > slow.token
    with pytest.raises(ClaimLost):
        jobs.ack(slow)
    with pytest.raises(ClaimLost):
        context.__exit__(None, None, None)
    assert jobs.ack(other).count == 1


@pytest.mark.parametrize("block", [block_the_thread, block_the_interpreter])
@pytest.mark.anyio
async def test_a_worker_whose_loop_was_blocked_is_fenced(real: ControlPlaneClient, block: Callable[[], None]) -> None:
    jobs = Queue.from_name("jobs", client=real).aio
    await jobs.put("job")
    slow = await jobs.claim(claimer="slow", lease_s=LEASE_S)
    assert slow is not None
    block()
    assert slow.lost
    other = await jobs.claim(claimer="other", timeout_s=math.inf)
    assert other is not None
    with pytest.raises(ClaimLost):
        await slow.ack()
    assert (await other.ack()).count == 1


def test_a_lock_holder_whose_interpreter_was_blocked_cannot_write_any_more(real: ControlPlaneClient) -> None:
    shared = Dict.from_name("shared", client=real)
    context = shared.locked("row", holder="slow", lease_s=LEASE_S)
    slow = context.__enter__()
    block_the_interpreter()
    with shared.locked("row", holder="other", lease_s=60) as other:
        shared.put("row", "other's", fence=other.token)
    assert slow.lost
    with pytest.raises(LeaseLost):
        shared.put("row", "stale", lease_id=slow.lease_id)
    assert not shared.compare_and_set("row", "other's", "stale", fence=slow.token).updated
    with pytest.raises(LeaseLost):
        context.__exit__(None, None, None)
    assert shared.get("row") == "other's"


# Ctrl-C

HELD_BY_A_THREAD = """
import sys, threading
from holdfast._sync.handles.lock import Lock
with Lock("reports", lease_s=600, base_url=sys.argv[1]):
    print("inside", flush=True)
    threading.Event().wait(60)
"""

HELD_BY_A_TASK = """
import asyncio, sys
from holdfast._async.handles.lock import AsyncLock
async def main():
    async with AsyncLock("reports", lease_s=600, base_url=sys.argv[1]):
        print("inside", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("program", [HELD_BY_A_THREAD, HELD_BY_A_TASK], ids=["thread", "task"])
def test_an_interrupted_program_gives_back_what_it_held(tmp_path: Path, program: str) -> None:
    url = f"sqlite:///{tmp_path}/store"
    with ControlPlaneClient(url) as client:
        lock = Lock("reports", client=client)
        holder = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        with holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "inside\n"
            assert lock.holding() is not None
            holder.send_signal(signal.SIGINT)
            assert holder.wait(60) != 0
        assert lock.holding() is None


def test_an_interrupt_between_taking_and_entering_gives_back(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock("reports", client=client, lease_s=600)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client.keepalive, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lock.__enter__()
    assert lock.holding() is None
    with pytest.raises(RuntimeError, match="was not entered"):
        lock.__exit__(None, None, None)


def test_an_interrupt_on_the_way_out_gives_back(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock("reports", client=client, lease_s=600)
    lock.__enter__()
    drop = client.keepalive.drop
    drops: list[object] = []

    def interrupted_once(hold: Any) -> None:
        drops.append(hold)
        if len(drops) == 1:
            raise KeyboardInterrupt
        drop(hold)

    monkeypatch.setattr(client.keepalive, "drop", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        lock.__exit__(None, None, None)
    assert lock.holding() is None
    assert len(client.keepalive) == 0


def test_a_context_that_was_never_left_is_renewed_no_more(client: ControlPlaneClient) -> None:
    context = Dict.from_name("shared", client=client).lease("a", holder="w")
    context.__enter__()
    assert len(client.keepalive) == 1
    del context
    gc.collect()
    assert len(client.keepalive) == 0


# Forks


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_lost_what_its_parent_holds_and_does_not_give_it_back(tmp_path: Path) -> None:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/store") as client:
        lock = Lock("reports", client=client, lease_s=600)
        with lock as held:
            child = os.fork()
            if child == 0:
                os._exit(_leave_in_child(lock, held))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            held.check()
            assert lock.holding() is not None
        assert lock.holding() is None


def _leave_in_child(lock: Lock, held: Any) -> int:
    try:
        assert held.lost
        with pytest.raises(LeaseLost, match="forked"):
            held.check()
        with pytest.raises(LeaseLost):
            held.renew()
        assert held.release().lost == 1
        lock.__exit__(None, None, None)
        assert lock.holding() is not None
        assert lock.try_acquire() is None
    except BaseException:  # noqa: BLE001 - the parent looks at the code
        return 1
    return 0
