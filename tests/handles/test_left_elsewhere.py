"""A lock, an election, a claim or a lease that another thread or task leaves than the one that entered it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from holdfast import ControlPlaneClient, Dict, Election, LeaseLost, Lock, Queue
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as made:
        yield made


def held(client: ControlPlaneClient) -> dict[str, Any]:
    return {
        "lock": Lock("reports", client=client),
        "election": Election("reports", client=client),
        "lease": Dict.from_name("d", client=client).lease("reports", holder="a"),
        "claimed": Queue.from_name("reports", client=client).claimed(claimer="a"),
    }


@pytest.mark.parametrize("what", ["lock", "election", "lease", "claimed"])
def test_what_one_thread_entered_another_leaves(client: ControlPlaneClient, what: str) -> None:
    Queue.create("reports", client=client).put("x")
    with ThreadPoolExecutor(1) as there:
        entered = held(client)[what]
        there.submit(entered.__enter__).result()
        assert len(client.keepalive) == 1
        entered.__exit__(None, None, None)
    assert len(client.keepalive) == 0
    assert Lock("reports", client=client).holding() is None
    assert Election("reports", client=client).leader() is None
    assert Dict.from_name("d", client=client).lease_holder("reports") is None
    assert Queue.from_name("reports", client=client).stats().leased == 0


@pytest.mark.parametrize("kind", [Lock, Election])
def test_an_exit_stack_is_handed_on(client: ControlPlaneClient, kind: Any) -> None:
    with ThreadPoolExecutor(1) as there:
        stack = ExitStack()
        there.submit(stack.enter_context, kind("reports", client=client)).result()
        stack.close()
    assert len(client.keepalive) == 0


@pytest.mark.parametrize("kind", [Lock, Election])
async def test_what_one_task_entered_another_leaves(client: ControlPlaneClient, kind: Any) -> None:
    stack = AsyncExitStack()
    handle = kind("reports", client=client).aio
    await asyncio.create_task(stack.enter_async_context(handle))
    await asyncio.create_task(stack.aclose())
    assert len(client.keepalive) == 0


async def test_a_fixture_is_set_up_and_torn_down_by_two_tasks(client: ControlPlaneClient) -> None:
    lock = Lock("reports", client=client).aio

    @asynccontextmanager
    async def fixture() -> AsyncIterator[int]:
        async with lock as lease:
            yield lease.token

    made = fixture()
    assert await asyncio.create_task(made.__aenter__()) > 0
    assert await lock.holding() is not None
    await asyncio.create_task(made.__aexit__(None, None, None))
    assert await lock.holding() is None


async def test_a_loss_is_told_to_the_task_that_leaves(client: ControlPlaneClient, clock: FakeClock) -> None:
    stack = AsyncExitStack()
    lock = Lock("reports", client=client, lease_s=10.0, max_hold_s=1.0).aio
    await asyncio.create_task(stack.enter_async_context(lock))
    clock.advance(11)
    with pytest.raises(LeaseLost):
        await stack.aclose()


@pytest.mark.parametrize("kind", [Lock, Election])
def test_whoever_did_not_enter_cannot_leave(client: ControlPlaneClient, kind: Any) -> None:
    with pytest.raises(RuntimeError, match="'reports' was left, but this handle was not entered"):
        kind("reports", client=client).__exit__(None, None, None)


@pytest.mark.parametrize("kind", [Lock, Election])
def test_who_was_overtaken_leaves_its_own_and_not_the_newer_one(client: ControlPlaneClient, clock: FakeClock, kind: Any) -> None:
    handle = kind("reports", client=client, lease_s=10.0, max_hold_s=1.0)
    with ThreadPoolExecutor(1) as overtaken, ThreadPoolExecutor(1) as newer:
        overtaken.submit(handle.__enter__).result()
        clock.advance(11)
        lease = newer.submit(handle.__enter__).result()
        with pytest.raises(LeaseLost):
            # By a third thread: which of the two is meant, it does not say.
            handle.__exit__(None, None, None)
        assert lease.held
        newer.submit(handle.__exit__, None, None, None).result()
    assert len(client.keepalive) == 0


def test_fastapi_dependencies_that_yield_inside_a_lock_release_it(client: ControlPlaneClient) -> None:
    app = FastAPI()
    lock = Lock("reports", client=client, wait_timeout_s=30.0)
    threads: list[tuple[int, int]] = []

    def locked() -> Iterator[int]:
        entered_by = threading.get_ident()
        with lock as lease:
            yield lease.token
        threads.append((entered_by, threading.get_ident()))

    @app.get("/")
    def report(token: Annotated[int, Depends(locked)]) -> int:
        return token

    def ask(browser: TestClient) -> int:
        answer = browser.get("/")
        assert answer.status_code == 200, answer.text
        token: int = answer.json()
        return token

    with TestClient(app) as browser, ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(ask, [browser] * 24))
    assert len(set(tokens)) == 24
    assert any(entered_by != left_by for entered_by, left_by in threads)
    assert len(client.keepalive) == 0
    assert lock.holding() is None
