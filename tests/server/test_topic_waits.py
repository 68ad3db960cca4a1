"""Topics that clients wait on: taken in a few at a time, so many of each caller, and forgotten when nobody waits."""

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from holdfast.server import topic_waits
from holdfast.server.load.body_budget import PIECE, Budget
from holdfast.server.topic_waits import Topics
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import Asked
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.threads import PATIENCE_S


@pytest.mark.anyio
@pytest.mark.parametrize("others", [["other"], []], ids=["beside others", "control: alone"])
async def test_while_there_are_others_a_caller_pauses_between_its_pieces(others: list[str]) -> None:
    now = 0.0
    budget = Budget(lambda: bool(others), now=lambda: now)
    pieces = budget.in_pieces("me", range(3 * PIECE))
    assert len(await anext(pieces)) == PIECE
    following = asyncio.ensure_future(anext(pieces))
    for _ in range(20):
        await asyncio.sleep(0)
    # By a clock that stands still, the pause does not end.
    assert following.done() is not bool(others)
    assert len(await anext(budget.in_pieces("other", range(PIECE)))) == PIECE
    now += 1_000.0
    assert len(await following) == PIECE


@pytest.mark.anyio
async def test_topics_are_announced_to_the_store_a_few_at_a_time() -> None:
    store = MemoryStore()
    announced = list[Future[None]]()

    def announce(topic: str) -> Future[None]:
        del topic
        announced.append(Future())
        return announced[-1]

    store.waiters.announce = announce
    topics = Topics(store, Budget(bool))
    waiting = asyncio.create_task(topics.wait("me", [Asked(f"queue:{number}") for number in range(3 * PIECE)], 0.0))
    for pieces in range(1, 4):
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(announced), len(topics)) == (pieces * PIECE, pieces * PIECE)
        for future in announced[-PIECE:]:
            future.set_result(None)
    assert len(await waiting) == 3 * PIECE
    topics.close()
    store.close()


@pytest.mark.anyio
async def test_a_store_that_hears_of_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_waits, "ANNOUNCE_S", 0.01)
    store = MemoryStore()
    store.waiters.announce = lambda _: Future()
    topics = Topics(store, Budget(bool))
    naps = list[float]()
    wait = asyncio.wait

    async def counted(futures: Any, *, timeout: float) -> Any:  # noqa: ASYNC109 - asyncio's own
        naps.append(timeout)
        return await wait(futures, timeout=timeout)

    monkeypatch.setattr(asyncio, "wait", counted)
    assert len(await topics.wait("me", [Asked(f"queue:{number}") for number in range(3 * PIECE)], 0.0)) == 3 * PIECE
    assert naps == [0.01]
    topics.close()
    store.close()


@pytest.mark.anyio
async def test_many_topics_are_entered_a_few_at_a_time() -> None:
    store = MemoryStore()
    topics = Topics(store, Budget(bool))
    asked = [Asked(f"queue:{number}") for number in range(1_000)]
    waiting = asyncio.create_task(topics.wait("me", asked, 0.0))
    seen = set[int]()
    while not waiting.done():
        seen.add(len(topics))
        await asyncio.sleep(0)
    assert len(seen) > 10
    assert len(await waiting) == 1_000
    topics.close()
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(("most", "most_each", "status"), [(4, 9, 503), (9, 4, 429)])
async def test_more_topics_than_allowed_are_refused_and_those_nobody_waits_on_make_room(most: int, most_each: int, status: int) -> None:
    store = MemoryStore()
    topics = Topics(store, Budget(bool), most, most_each)

    async def wait(*names: str, timeout_s: float = 0.0) -> list[str]:
        return [heard.topic for heard in await topics.wait("me", [Asked(f"queue:{name}") for name in names], timeout_s)]

    assert await wait("a", "b", "c", "d") == ["queue:a", "queue:b", "queue:c", "queue:d"]
    assert await wait("d", "e", "f") == ["queue:d", "queue:e", "queue:f"]
    assert len(topics) == 4
    with pytest.raises(WireError) as refused:
        await wait("a", "b", "c", "d", "e")
    assert (refused.value.problem.status, refused.value.headers) == (status, ((b"retry-after", b"5"),))
    assert len(topics) <= 4
    topics.close()
    store.close()


@pytest.mark.anyio
async def test_a_caller_with_many_topics_does_not_take_the_room_of_others() -> None:
    store = MemoryStore()
    topics = Topics(store, Budget(bool), 6, 3)
    (mine,) = await topics.wait("me", [Asked("queue:mine")], 0.0)
    waiting = asyncio.create_task(topics.wait("me", [Asked("queue:mine", mine.mark)], PATIENCE_S))
    for round_ in range(5):
        await topics.wait("other", [Asked(f"queue:{round_}-{number}") for number in range(3)], 0.0)
    with pytest.raises(WireError):
        await topics.wait("other", [Asked(f"queue:{number}") for number in range(4)], 0.0)
    store.waiters.hint("queue:mine")
    assert [heard.topic for heard in await waiting] == ["queue:mine"]
    topics.close()
    store.close()


@pytest.mark.anyio
async def test_a_wait_that_is_given_up_while_its_topics_are_announced_leaves_none_behind() -> None:
    store = MemoryStore()
    store.waiters.announce = lambda _: Future()
    now = 0.0
    topics = Topics(store, Budget(bool), now=lambda: now)
    wait = asyncio.create_task(topics.wait("me", [Asked("queue:a")], PATIENCE_S))
    await asyncio.sleep(0)
    wait.cancel()
    await asyncio.wait([wait])
    now = 1_000.0
    await topics.wait("me", [Asked("queue:b")], 0.0)
    assert len(topics) == 1
    topics.close()
    store.close()
