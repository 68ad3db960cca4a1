"""Tasks on a Redis store: they share connections, and who is cancelled leaves nothing held. And forks."""

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Claim, Claimed, Count, Item, Put, Settle
from holdfast.stores.redis import RedisStore
from holdfast.stores.redis import tasks as redis_tasks
from holdfast.testing.conformance.asking import JOBS, claim, drain, item, put, stats
from tests.servers import own_redis_url

pytestmark = pytest.mark.anyio


@pytest.fixture
def store() -> Iterator[RedisStore]:
    store = RedisStore(own_redis_url())
    yield store
    store.close()


async def test_what_many_tasks_ask_at_once_is_all_answered_on_one_connection(store: RedisStore) -> None:
    tasks = store.for_tasks()
    await asyncio.gather(*[tasks.execute(Put(JOBS, [item(str(number))])) for number in range(200)])
    claimed = await asyncio.gather(*[tasks.execute(Claim(JOBS, str(number), 60.0)) for number in range(200)])
    assert len({answer.messages[0].id for answer in claimed}) == 200, "a reply went to somebody else"
    assert [answer.messages[0].holder for answer in claimed] == [str(number) for number in range(200)]
    assert len(tasks.pipes) == 1
    await tasks.aclose()


@pytest.mark.parametrize(("apart_bytes", "first"), [(redis_tasks.APART_BYTES, "short"), (2**30, "long")])
async def test_no_short_reply_arrives_behind_a_long_one_unless_both_share_a_connection(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch, apart_bytes: int, first: str
) -> None:
    monkeypatch.setattr(redis_tasks, "APART_BYTES", apart_bytes)
    large = Raw(b'"%s"' % (b"x" * (2**20 - 100)))
    for number in range(12):
        store.execute(Put(JOBS, [Item(str(number), large)]))
    tasks, done = store.for_tasks(), list[str]()

    async def ask(name: str, limit: int) -> None:
        await tasks.execute(Browse(JOBS, limit=limit))
        done.append(name)

    await asyncio.gather(ask("connected", 1), ask("connected", 10))
    firsts = set[str]()
    for _ in range(10):  # The long one may come first now and then, where the machine lets this process wait.
        done.clear()
        long = asyncio.create_task(ask("long", 12))
        await asyncio.sleep(0)  # It is asked first.
        await asyncio.gather(long, ask("short", 1))
        firsts.add(done[0])
    assert first in firsts
    assert apart_bytes < 2**30 or firsts == {first}
    await tasks.aclose()


async def test_a_claim_that_is_cancelled_on_its_way_holds_nothing(store: RedisStore) -> None:
    tasks = store.for_tasks()
    put(store, *[str(number) for number in range(20)])
    await tasks.execute(Count(JOBS))  # Connected, so that what is cancelled is on its way.
    for steps in range(20):
        claiming = asyncio.create_task(tasks.execute(Claim(JOBS, "cancelled", 3_600.0)))
        for _ in range(steps):
            await asyncio.sleep(0)
        claiming.cancel()
        (answer,) = await asyncio.gather(claiming, return_exceptions=True)
        if isinstance(answer, Claimed):  # It was there before it could be cancelled.
            await tasks.execute(Settle([message.receipt for message in answer.messages], "ready"))
    for thread in threading.enumerate():
        if thread.name == "holdfast-take-back":
            await asyncio.to_thread(thread.join, 20)
    assert stats(store).ready == 20, "somebody who was cancelled still holds a message"
    await tasks.aclose()


async def test_a_refusal_or_an_error_of_one_task_harms_no_other(store: RedisStore) -> None:
    tasks = store.for_tasks()
    good = [tasks.execute(Put(JOBS, [item(str(number))])) for number in range(5)]
    bad = [tasks.execute(Put(JOBS, [item(f"k{number}", key='"k"', if_ready="reject")])) for number in range(3)]
    answers = await asyncio.gather(*good, *bad, return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["Puts"] * 6 + ["KeyInFlight"] * 2
    await tasks.aclose()


def test_a_forked_child_uses_connections_of_its_own(store: RedisStore) -> None:
    put(store, "a", "b")
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, ",".join(message.id for message in claim(store)).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 100) == b"a"
    assert drain(store) == ["b"]
    os.close(reading)
    os.close(writing)
