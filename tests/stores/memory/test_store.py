"""Threads, tasks, forks and the end of a memory store."""

import asyncio
import os
import threading
from collections.abc import Callable

import pytest

from holdfast.commands import (
    Changes,
    Claim,
    Configure,
    Count,
    Item,
    Prune,
    Put,
    Settle,
)
from holdfast.errors import Closed
from holdfast.stores.memory import AsyncMemoryStore, MemoryStore
from tests.stores.memory.acts import VALUE, anything, claim, put


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_eight_threads_take_each_message_once() -> None:
    store = MemoryStore()
    taken: list[str] = []

    def work(number: int) -> None:
        for n in range(200):
            put(store, f"{number}-{n}", key=f"{number}-{n}")
            for message in claim(store):
                assert store.execute(Settle([message.receipt])).held == [True]
                taken.append(message.id)

    in_threads(8, work)
    assert sorted(taken) == sorted(f"{number}-{n}" for number in range(8) for n in range(200))
    assert len(store.execute(Changes("queue:jobs", limit=10_000)).events) == 8 * 200 * 3
    assert store._tables.messages == {}


def test_a_put_wakes_a_thread_that_waits() -> None:
    store = MemoryStore()
    found: list[str] = []

    def work(number: int) -> None:
        with store.mark("queue:jobs") as mark:
            while not (messages := claim(store)):
                store.wait(mark, 30)
        found.append(messages[0].id)

    waiting = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in waiting:
        thread.start()
    put(store, "a", "b")
    put(store, "c")
    put(store, "d")
    for thread in waiting:
        thread.join(60)
    assert sorted(found) == ["a", "b", "c", "d"]


def test_tasks_are_answered_in_place_and_wait_without_a_thread() -> None:
    async def scenario() -> list[str]:
        store = AsyncMemoryStore(MemoryStore())
        mark = store.mark("queue:jobs")
        await store.execute(Claim("jobs"))
        waiting = asyncio.create_task(store.wait(mark, 30))
        await asyncio.sleep(0)
        await store.execute(Put("jobs", [Item("a", VALUE)]))
        await waiting
        assert threading.active_count() == threads
        return [message.id for message in (await store.execute(Claim("jobs"))).messages]

    threads = threading.active_count()
    assert asyncio.run(scenario()) == ["a"]


def test_a_closed_store_ends_waits_and_answers_nothing() -> None:
    store = MemoryStore()
    put(store, "a")
    mark = store.mark("queue:jobs")
    ended: list[type[BaseException]] = []

    def work(_number: int) -> None:
        try:
            store.wait(mark, 30)
        except Closed as error:
            ended.append(type(error))

    thread = threading.Thread(target=work, args=(0,))
    thread.start()
    store.close()
    store.close()
    thread.join(60)
    assert ended == [Closed]
    for command in (Claim("jobs"), Put("jobs", [Item("b", VALUE)]), Count("jobs"), Prune()):
        with pytest.raises(Closed):
            store.execute(anything(command))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_a_copy_of_its_own() -> None:
    store = MemoryStore()
    put(store, "a")
    with store._lock:
        child = os.fork()
        if child == 0:
            ids = [message.id for message in claim(store)]
            os._exit(0 if ids == ["a"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [message.id for message in claim(store)] == ["a"]


def test_a_forked_child_goes_on_though_another_thread_held_the_lock(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    fast = references.fast("jobs")
    with references._lock:
        references.begin_in_child()
        assert fast.put("x", 1), "as in a child, where whoever has the lock is not"
        references._lock.acquire()
