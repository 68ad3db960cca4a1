"""Opening a store at the first use: once, and never on the event loop."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Closed, ControlPlaneClient, Dict, Election, Job, Lock, Once, Queue, Worker, aio, connect
from holdfast.commands import Claim, Put
from holdfast.commands.topics import queue_topic
from holdfast.errors import StoreUnavailable
from holdfast.process.open_once import Opener
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.opened_late import LateStore, opened
from holdfast.testing.conformance.asking import item
from tests.server.serving import Served
from tests.stores_by_name import url_of


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        yield port


async def work() -> None:
    """Never called."""


async def enter(context: Any) -> None:
    async with context:
        raise AssertionError("the server never answered")


CALLS: dict[str, Callable[[ControlPlaneClient], Awaitable[object]]] = {
    "put": lambda client: Queue.from_name("q", client=client).aio.put(1),
    "get": lambda client: Queue.from_name("q", client=client).aio.get(),
    "claimed": lambda client: enter(Queue.from_name("q", client=client).aio.claimed(claimer="w")),
    "stats": lambda client: Queue.from_name("q", client=client).aio.stats(),
    "dict": lambda client: Dict.from_name("d", client=client).aio.get("k"),
    "items": lambda client: Dict.from_name("d", client=client).aio.items(),
    "dict lease": lambda client: enter(Dict.from_name("d", client=client).aio.lease("k", holder="w")),
    "lock": lambda client: enter(Lock("l", client=client).aio),
    "election": lambda client: enter(Election("e", client=client).aio),
    "once": lambda client: Once("o", client=client).aio.run("k", work),
    "job": lambda client: Job("q", "id", client=client).aio.result(timeout_s=5.0),
    "workers": lambda client: Worker.aio.list(client=client),
    "create": lambda client: Queue.aio.create("q", client=client),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_task_that_opens_a_silent_server_holds_up_no_other(silent: int, call: str) -> None:
    client = ControlPlaneClient(f"redis://127.0.0.1:{silent}/0")

    async def main() -> None:
        calling = asyncio.ensure_future(CALLS[call](client))
        for _ in range(3):
            done, _ = await asyncio.wait([calling], timeout=0.01)
            assert not done
        calling.cancel()
        await asyncio.wait([calling])
        assert calling.cancelled()

    asyncio.run(main())
    assert client.opened is None, "the event loop stood still until the server was given up"
    client.close()


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
def test_a_time_limit_is_heeded_while_a_silent_server_is_opened(silent: int, scheme: str) -> None:
    client = ControlPlaneClient(f"{scheme}://127.0.0.1:{silent}/0")
    ticks = []

    async def tick() -> None:
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    async def main() -> None:
        ticking = asyncio.create_task(tick())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Queue.from_name("q", client=client).aio.put(1), 0.1)
        ticking.cancel()

    asyncio.run(main())
    assert len(ticks) > 2, "the event loop stood still"
    client.close()


def test_a_copy_between_stores_opens_them_in_threads_too(silent: int) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aio.copy(f"redis://127.0.0.1:{silent}/0", "memory://copied"), 0.1)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "redis", "postgres", "http"])
def test_tasks_open_every_store_in_a_thread(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def recording(*args: Any, **options: Any) -> Store:
        threads.append(threading.current_thread())
        return connect(*args, **options)

    monkeypatch.setattr("holdfast.client.connect", recording)
    with contextlib.ExitStack() as stack:
        served = Served(MemoryStore()) if kind == "http" else None
        if served:
            stack.callback(served.close)
        client = stack.enter_context(ControlPlaneClient(served.url if served else url_of(kind, tmp_path)))
        jobs = Queue.from_name("q", client=client).aio

        async def main() -> list[int]:
            await asyncio.gather(*[jobs.put(number) for number in range(5)])
            return [await jobs.get() for _ in range(5)]

        assert sorted(asyncio.run(main())) == [0, 1, 2, 3, 4]
        assert len(threads) == 1
        assert threads[0] is not threading.main_thread()


class Slow:
    """Opens a store when it is told to."""

    def __init__(self) -> None:
        self.opened: list[MemoryStore] = []
        self.has_begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.error: BaseException | None = None

    def __call__(self) -> Store:
        self.has_begun.release()
        self.may_end.acquire()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.opened.append(MemoryStore())
        return self.opened[-1]


def in_thread(call: Callable[[], object]) -> "tuple[threading.Thread, list[object]]":
    answers: list[object] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - it is looked at
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


def test_threads_and_tasks_that_come_first_share_one_opening() -> None:
    slow = Slow()
    opener = Opener(slow)

    async def main() -> list[object]:
        tasks = [asyncio.create_task(opened(opener)) for _ in range(3)]
        await asyncio.to_thread(slow.has_begun.acquire)
        thread, answers = in_thread(opener.get)
        slow.may_end.release()
        faces = await asyncio.gather(*tasks)
        await asyncio.to_thread(thread.join)
        return [*faces, *answers]

    answers = asyncio.run(main())
    assert answers == [opener.face] * 3 + [slow.opened[0]]
    assert len(slow.opened) == 1


def test_an_opening_that_failed_is_told_to_all_and_tried_again_by_the_next() -> None:
    slow = Slow()
    slow.error = StoreUnavailable("away")
    opener = Opener(slow)
    first, told_first = in_thread(opener.get)
    slow.has_begun.acquire()
    second, told_second = in_thread(lambda: opener.begin().result())
    slow.may_end.release(2)
    first.join()
    second.join()
    assert isinstance(told_first[0], StoreUnavailable)
    assert isinstance(told_second[0], StoreUnavailable) or told_second == slow.opened
    assert opener.get() is opener.store
    opener.close()


def test_who_waits_for_an_opening_that_was_interrupted_opens_by_itself() -> None:
    slow = Slow()
    slow.error = KeyboardInterrupt()
    opener = Opener(slow)
    first, told_first = in_thread(opener.get)
    slow.has_begun.acquire()
    second, told_second = in_thread(opener.get)
    slow.may_end.release(2)
    first.join()
    second.join()
    assert isinstance(told_first[0], KeyboardInterrupt)
    assert told_second == slow.opened


def test_closing_waits_for_no_opening_and_what_is_opened_later_is_closed() -> None:
    slow = Slow()
    opener = Opener(slow)
    thread, answers = in_thread(opener.get)
    slow.has_begun.acquire()

    async def main() -> None:
        task = asyncio.create_task(opened(opener))
        await asyncio.sleep(0)
        opener.close()
        with pytest.raises(Closed):
            await task

    asyncio.run(main())
    slow.may_end.release()
    thread.join()
    assert isinstance(answers[0], Closed)
    with pytest.raises(Closed):
        slow.opened[0].execute(Put("q", [item("a")]))


def test_a_signal_handler_may_need_the_store_that_is_being_opened() -> None:
    stores: list[Store] = []

    def reentrant() -> Store:
        if not stores:
            stores.append(MemoryStore())
            stores.append(opener.get())
        return MemoryStore()

    opener = Opener(reentrant)
    assert opener.get() is stores[1]


def test_a_mark_that_was_taken_before_the_store_is_open_hears_what_comes_after() -> None:
    store = MemoryStore()
    opener = Opener(lambda: store)
    late = LateStore(opener, store.url, store.limits)

    async def main() -> list[str]:
        asked = 0
        with late.mark(queue_topic("q")) as mark:
            while not (claimed := await late.execute(Claim("q", "w", 10.0))).messages:
                asked += 1
                if asked == 2:
                    asyncio.get_running_loop().call_soon(store.execute, Put("q", [item("a")]))
                await late.wait(mark, 60.0)
            mark.used()
        assert asked == 2
        return [message.id for message in claimed.messages]

    assert asyncio.run(main()) == ["a"]
    assert len(store.waiters.marked) == 0


def test_a_child_opens_what_its_parent_was_about_to() -> None:
    slow = Slow()
    client = ControlPlaneClient("sqlite:///never")
    client._opener.open_store = slow
    thread, _ = in_thread(lambda: client.store)
    slow.has_begun.acquire()
    child = os.fork()
    if child == 0:
        slow.may_end.release()
        os._exit(0 if client.store is slow.opened[0] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    slow.may_end.release()
    thread.join()
    client.close()
