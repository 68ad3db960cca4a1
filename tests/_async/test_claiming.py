"""The claiming flow: patience with a deadline, wake-ups, and no poll in between."""

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast._async.flows.claiming import claim
from holdfast.commands import Claim, Configure, Item, Put, Settle
from holdfast.commands.topics import key_topic, queue_topic
from holdfast.connect import connect_async
from holdfast.errors import Closed
from holdfast.stores import AsyncStore
from holdfast.stores.waiting.waiters import Mark
from tests.runners import AsyncRunner, waiting_on

pytestmark = pytest.mark.anyio

NEVER_POLLS_S = 3_600.0


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncStore]:
    url = "memory://" if request.param == "memory" else f"{request.param}:///{tmp_path}/store"
    opened = connect_async(url)
    yield opened
    await opened.aclose()


async def test_without_a_timeout_an_empty_queue_answers_at_once(store: AsyncStore) -> None:
    assert await claim(store, Claim("jobs", "w", 30.0)) == []


async def test_a_timeout_of_zero_asks_once(store: AsyncStore) -> None:
    assert await claim(store, Claim("jobs", "w", 30.0), 0.0) == []


async def test_what_is_there_is_claimed_without_waiting(store: AsyncStore) -> None:
    await store.execute(Put("jobs", [Item("a", Raw(b"1"))]))
    claimed = await claim(store, Claim("jobs", "w", 30.0), math.inf)
    assert [message.id for message in claimed] == ["a"]


async def test_a_put_wakes_a_claim_that_waits_for_ever(store: AsyncStore) -> None:
    async with AsyncRunner() as runner:
        waiting = runner.start(claim, store, Claim("jobs", "w", 30.0), math.inf, NEVER_POLLS_S)
        await runner.until(lambda: waiting_on(store, queue_topic("jobs")) == 1)
        await store.execute(Put("jobs", [Item("a", Raw(b"1"))]))
        assert [message.id for message in await waiting.result()] == ["a"]


async def test_a_delayed_message_wakes_a_claim_when_it_is_due(store: AsyncStore) -> None:
    async with AsyncRunner() as runner:
        waiting = runner.start(claim, store, Claim("jobs", "w", 30.0), math.inf, NEVER_POLLS_S)
        await runner.until(lambda: waiting_on(store, queue_topic("jobs")) == 1)
        await store.execute(Put("jobs", [Item("later", Raw(b"1"), delay_s=0.05)]))
        assert [message.id for message in await waiting.result()] == ["later"]


async def test_an_expired_lease_wakes_a_claim(store: AsyncStore) -> None:
    await store.execute(Put("jobs", [Item("a", Raw(b"1"))]))
    first = await claim(store, Claim("jobs", "lost", 0.05))
    again = await claim(store, Claim("jobs", "w", 30.0), math.inf, NEVER_POLLS_S)
    assert [message.id for message in again] == ["a"]
    assert again[0].token > first[0].token


async def test_a_release_wakes_a_claim_of_that_key_and_no_other(store: AsyncStore) -> None:
    await store.execute(Put("jobs", [Item("a", Raw(b"1"), key='"k"'), Item("b", Raw(b"2"), key='"other"')]))
    held = await claim(store, Claim("jobs", "first", 30.0, 2))
    async with AsyncRunner() as runner:
        waiting = runner.start(claim, store, Claim("jobs", "w", 30.0, key='"k"'), math.inf, NEVER_POLLS_S)
        await runner.until(lambda: waiting_on(store, key_topic("jobs", '"k"')) == 1)
        await store.execute(Settle([message.receipt for message in held if message.id == "b"], "ready"))
        assert waiting_on(store, key_topic("jobs", '"k"')) == 1
        await store.execute(Settle([message.receipt for message in held if message.id == "a"], "ready"))
        assert [message.id for message in await waiting.result()] == ["a"]


async def test_a_put_of_two_wakes_two_of_three(store: AsyncStore) -> None:
    async with AsyncRunner() as runner:
        waiting = [runner.start(claim, store, Claim("jobs", "w", 30.0), math.inf, NEVER_POLLS_S) for _ in range(3)]
        await runner.until(lambda: waiting_on(store, queue_topic("jobs")) == 3)
        await store.execute(Put("jobs", [Item("a", Raw(b"1")), Item("b", Raw(b"2"))]))
        await runner.until(lambda: waiting_on(store, queue_topic("jobs")) == 1)
        await store.execute(Put("jobs", [Item("c", Raw(b"3"))]))
        claimed = [(await one.result())[0].id for one in waiting]
        assert sorted(claimed) == ["a", "b", "c"]


async def test_closing_the_store_ends_a_waiting_claim(store: AsyncStore) -> None:
    async with AsyncRunner() as runner:
        waiting = runner.start(claim, store, Claim("jobs", "w", 30.0), math.inf, NEVER_POLLS_S)
        await runner.until(lambda: waiting_on(store, queue_topic("jobs")) == 1)
        await store.aclose()
        with pytest.raises(Closed):
            await waiting.result()


async def test_a_claim_by_key_asks_again_for_a_group_that_opened_meanwhile(store: AsyncStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []
    wait = store.wait

    async def recorded(mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        waits.append(due_in_s)
        await wait(mark, timeout_s, due_in_s, poll_s)

    monkeypatch.setattr(store, "wait", recorded)
    await store.execute(Configure("queue", "jobs", groups="fair", group_limit=1))
    await store.execute(Put("jobs", [Item(key, Raw(b"1"), key=key, group="g") for key in "ab"]))
    (held,) = (await store.execute(Claim("jobs", "w", 30.0))).messages
    async with AsyncRunner() as runner:
        waiting = runner.start(claim, store, Claim("jobs", "w", 30.0, key="b"), math.inf, 0.01)
        await runner.until(lambda: waiting_on(store, key_topic("jobs", "b")) == 1)
        await store.execute(Settle([held.receipt]))
        assert [message.id for message in await waiting.result()] == ["b"]
    assert set(waits) == {0.01}
