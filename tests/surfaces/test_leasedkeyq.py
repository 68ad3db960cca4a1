"""leasedkeyq's API keeps its promises, on a store of its own and on others, and none of the original's faults is here."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast import ClaimLost, QueueFull
from holdfast._async.flows.claiming import claim
from holdfast.client import ControlPlaneClient
from holdfast.commands import Browse
from holdfast.commands.topics import queue_topic
from holdfast.stores.memory import MemoryStore
from holdfast.surfaces.leasedkeyq import (
    InvalidLeaseError,
    KeyAlreadyInFlightError,
    Lease,
    LeaseAlreadyAcknowledgedError,
    LeasedKeyQError,
    LeasedKeyQueue,
    LeaseRecord,
    QueueClosedError,
)
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import url_of

pytestmark = pytest.mark.anyio

SECOND = 1.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[MemoryStore]:
    store = MemoryStore(clock=clock, by_reference=True, keeps_events=False)
    yield store
    store.close()


@pytest.fixture(params=["own", "memory", "sqlite", "lmdb", "redis", "postgres"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ControlPlaneClient]:
    url = "memory://?values=reference&events=none" if request.param == "own" else url_of(request.param, tmp_path)
    async with ControlPlaneClient(url) as client:
        yield client


@pytest.fixture
async def queue(client: ControlPlaneClient) -> AsyncIterator[LeasedKeyQueue[Any, Any]]:
    async with LeasedKeyQueue[Any, Any](store=client) as queue:
        yield queue


async def drained(queue: LeasedKeyQueue[Any, Any]) -> list[Any]:
    """The keys in the order in which they are handed out."""
    keys = []
    while await queue.qsize():
        key, _, lease = await queue.get()
        await queue.ack(lease)
        keys.append(key)
    return keys


# On every store


async def test_items_come_in_the_order_they_were_put(queue: LeasedKeyQueue[Any, Any]) -> None:
    for key in ("a", "b", "c"):
        await queue.put(key, key.upper())
    key, value, lease = await queue.get()
    assert (key, value, lease.key, lease.attempts) == ("a", "A", "a", 1)
    assert await drained(queue) == ["b", "c"]


async def test_a_key_is_taken_wherever_it_stands(queue: LeasedKeyQueue[Any, Any]) -> None:
    for key in ("a", "b", "c"):
        await queue.put(key, 0)
    key, _, lease = await queue.take("b")
    assert key == "b"
    await queue.ack(lease)
    assert await drained(queue) == ["a", "c"]


async def test_a_new_value_keeps_the_place(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("a", 1)
    await queue.put("b", 2)
    await queue.put("a", 3)
    assert await queue.qsize() == 2
    assert (await queue.get())[:2] == ("a", 3)


async def test_a_released_item_goes_to_the_back_or_to_the_front(queue: LeasedKeyQueue[Any, Any]) -> None:
    for key in ("a", "b", "c"):
        await queue.put(key, 0)
    await queue.release((await queue.get())[2])
    _, _, lease = await queue.get()
    await queue.release(lease, requeue_front=True)
    assert await drained(queue) == ["b", "c", "a"]


async def test_what_is_in_flight_follows_the_policy(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("a", 1)
    _, _, lease = await queue.get()
    with pytest.raises(KeyAlreadyInFlightError, match="'a'"):
        await queue.put("a", 2, if_in_flight="reject")
    await queue.put("a", 3)
    assert await queue.qsize() == 0, "an update waits behind nobody"
    await queue.release(lease)
    assert (await queue.get())[1] == 3


async def test_a_key_never_has_two_leases_and_settling_loses_nothing(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("a", 1)
    _, _, first = await queue.get()
    await queue.put("a", 2, if_in_flight="buffer")
    assert await queue.qsize() == 1
    with pytest.raises(TimeoutError):
        await queue.get(timeout=0)
    with pytest.raises(TimeoutError):
        await queue.take("a", timeout=-1)
    await queue.ack(first)
    _, value, second = await queue.get()
    assert value == 2
    await queue.release(second)
    assert await queue.peek("a") == 2


async def test_a_released_item_gives_way_to_the_copy_behind_it(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("a", 1)
    _, _, lease = await queue.get()
    await queue.put("a", 2, if_in_flight="buffer")
    await queue.release(lease)
    assert await queue.qsize() == 1
    assert (await queue.get())[1] == 2


async def test_looking_shows_what_waits_and_what_is_in_flight(queue: LeasedKeyQueue[Any, Any]) -> None:
    for key in ("a", "b"):
        await queue.put(key, key.upper())
    await queue.get(lease_timeout=30.0)
    assert (await queue.peek("a"), await queue.peek("b"), await queue.peek("c")) == (None, "B", None)
    assert (await queue.contains("a"), await queue.contains("b")) == (False, True)
    assert (await queue.available_keys(), await queue.inflight_keys()) == ({"b"}, {"a"})
    assert (await queue.qsize(), await queue.inflight_size()) == (1, 1)
    await queue.put("a", "again", if_in_flight="buffer")
    assert (await queue.peek("a"), await queue.available_keys()) == ("again", {"a", "b"})
    (record,) = await queue.inflight()
    assert (record.key, record.value, record.acknowledged, record.timeout) == ("a", "A", False, 30.0)


async def test_settling_twice_says_what_became_of_the_lease(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("a", 1)
    _, _, lease = await queue.get()
    await queue.ack(lease)
    for settle in (queue.ack, queue.release):
        with pytest.raises(LeaseAlreadyAcknowledgedError):
            await settle(lease)
    await queue.put("b", 1)
    _, _, lease = await queue.get()
    await queue.release(lease)
    for settle in (queue.ack, queue.release):
        with pytest.raises(InvalidLeaseError):
            await settle(lease)
    for made_up in (Lease("no-such-token", "b"), Lease.create("b"), Lease("1/elsewhere/1", "b")):
        with pytest.raises(InvalidLeaseError) as raised:
            await queue.ack(made_up)
        assert isinstance(raised.value, LeasedKeyQError)
        assert isinstance(raised.value, ClaimLost)


async def test_a_lease_is_settled_by_its_token_alone(client: ControlPlaneClient) -> None:
    mine, theirs = (LeasedKeyQueue[str, int](store=client) for _ in range(2))
    await mine.put("a", 1)
    _, _, lease = await mine.get()
    copied = Lease(lease.token, "a")
    assert (copied, hash(copied)) == (lease, hash(lease))
    await theirs.ack(copied)
    assert await mine.inflight_size() == 0
    with pytest.raises(InvalidLeaseError):
        await mine.ack(lease)


async def test_a_waiting_get_is_given_what_is_put_and_what_is_released(queue: LeasedKeyQueue[Any, Any]) -> None:
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    await queue.put("a", 1)
    key, _, lease = await waiting
    waiting = asyncio.create_task(queue.take("a", timeout=60.0))
    await asyncio.sleep(0)
    await queue.release(lease)
    assert (key, (await waiting)[0]) == ("a", "a")


async def test_a_closed_queue_refuses_and_gives_back_in_order(client: ControlPlaneClient) -> None:
    queue = LeasedKeyQueue[str, int](store=client)
    for key in ("a", "b", "c", "d"):
        await queue.put(key, 0)
    _, _, lease = await queue.get()
    await queue.take("c")
    await queue.close()
    await queue.close()
    refused = [queue.start(), queue.put("e", 1), queue.get(), queue.take("a"), queue.ack(lease), queue.release(lease), queue.renew(lease)]
    for call in refused:
        with pytest.raises(QueueClosedError):
            await call
    assert (await queue.qsize(), await queue.inflight_size(), await queue.peek("a")) == (4, 0, 0)
    assert await drained(LeasedKeyQueue(store=client)) == ["a", "c", "b", "d"]


async def test_a_get_that_waits_at_close_is_handed_nothing(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    # So rarely that only what closing says can end the wait.
    monkeypatch.setattr("holdfast.surfaces.leasedkeyq.queue.claim", partial(claim, poll_s=3_600.0))
    closing, other = (LeasedKeyQueue[str, int](store=client) for _ in range(2))
    await other.put("held", 1)
    await closing.get()
    waiting = [asyncio.create_task(closing.get()), asyncio.create_task(closing.take("later")), asyncio.create_task(other.get())]
    while client.store.waiters.waiting(queue_topic("leasedkeyq")) < 2:  # noqa: ASYNC110 - nobody rings when somebody lies down
        await asyncio.sleep(0.001)
    await closing.close()
    for task in waiting[:2]:
        with pytest.raises(QueueClosedError):
            await task
    assert (await waiting[2])[0] == "held", "what closing gave back is for those who still wait"


async def test_a_full_queue_lets_a_put_wait_for_room(client: ControlPlaneClient) -> None:
    queue = LeasedKeyQueue[str, int](store=client, max_size=1)
    await queue.put("a", 1)
    await queue.put("a", 2)
    with pytest.raises(QueueFull):
        await queue.put("b", 1, timeout=0)
    waiting = asyncio.create_task(queue.put("b", 1))
    await asyncio.sleep(0)
    assert (await queue.get())[0] == "a"
    await waiting
    assert await queue.available_keys() == {"b"}


# Time


@pytest.mark.parametrize("max_size", [None, 10])  # With a size nothing takes a shortcut.
async def test_an_item_whose_lease_ended_returns_to_the_front(memory: MemoryStore, clock: FakeClock, max_size: int | None) -> None:
    queue = LeasedKeyQueue[str, int](store=memory, default_lease_timeout=30.0, max_size=max_size)
    for key in ("a", "b"):
        await queue.put(key, 0)
    _, _, late = await queue.get()
    clock.advance(30)
    assert (await queue.qsize(), await queue.inflight_size(), await queue.contains("a")) == (2, 0, True)
    key, _, lease = await queue.get()
    assert (key, lease.attempts) == ("a", 2)
    for settle in (queue.ack, queue.release, queue.renew):
        with pytest.raises(InvalidLeaseError):
            await settle(late)
    assert await queue.inflight_keys() == {"a"}, "the stale holder changed nothing"


async def test_leases_that_end_together_come_back_in_order(memory: MemoryStore, clock: FakeClock) -> None:
    queue = LeasedKeyQueue[str, int](store=memory)
    for key in ("a", "b", "c", "d"):
        await queue.put(key, 0)
    for _ in range(3):
        await queue.get(lease_timeout=1.0)
    clock.advance(1)
    assert await drained(queue) == ["a", "b", "c", "d"]


async def test_a_wait_ends_when_a_lease_does(memory: MemoryStore, clock: FakeClock) -> None:
    queue = LeasedKeyQueue[str, int](store=memory, default_lease_timeout=5.0)
    await queue.put("a", 1)
    await queue.get()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    clock.advance(5)
    assert (await waiting)[0] == "a"


async def test_a_renewed_lease_lasts(memory: MemoryStore, clock: FakeClock) -> None:
    queue = LeasedKeyQueue[str, int](store=memory, default_lease_timeout=10.0)
    await queue.put("a", 1)
    _, _, lease = await queue.get()
    clock.advance(9)
    await queue.renew(lease)
    clock.advance(9)
    await queue.renew(lease, 60.0)
    clock.advance(59)
    await queue.ack(lease)


async def test_without_a_time_out_a_lease_has_no_end(memory: MemoryStore, clock: FakeClock) -> None:
    queue = LeasedKeyQueue[str, int](store=memory)
    await queue.put("a", 1)
    _, _, lease = await queue.get()
    clock.advance(10 * 365 * 86_400)
    await queue.ack(lease)


async def test_a_budget_ends_in_the_dead_letters(memory: MemoryStore, clock: FakeClock) -> None:
    queue = LeasedKeyQueue[str, int](store=memory, default_lease_timeout=1.0, max_attempts=3, dead_letter_queue="dead")
    await queue.put("poison", 13)
    await queue.get()
    clock.advance(1)
    _, _, lease = await queue.get()
    await queue.fail(lease, "once more")
    _, _, lease = await queue.get()
    assert lease.attempts == 3
    await queue.fail(lease, "out of paint")
    assert (await queue.qsize(), await queue.inflight_size()) == (0, 0)
    (dead,) = memory.execute(Browse("dead")).messages
    assert cast("Any", dead.value) == 13
    await queue.put("poison", 14)
    assert await queue.peek("poison") == 14, "a dead letter's key swallows no new work"


async def test_a_time_out_counts_from_the_call_and_not_from_the_last_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("holdfast._async.flows.claiming.time", SimpleNamespace(monotonic=lambda: now[0]))
    queue = LeasedKeyQueue[str, int]()
    waiting = asyncio.create_task(queue.get(timeout=10.0))
    for _ in range(100):
        # A second later it is woken, and somebody was faster.
        await asyncio.sleep(0)
        now[0] += 1.0
        await queue.put("a", 0)
        await queue.ack((await queue.get())[2])
        await asyncio.sleep(0)
    assert waiting.done(), "each wake-up began its time anew"
    with pytest.raises(TimeoutError):
        await waiting


# A store of its own


async def test_values_are_the_callers_own_and_keys_anything_hashable() -> None:
    queue = LeasedKeyQueue[Any, Any]()
    value = [object()]
    keys = [None, 1, (1, frozenset({"x"})), "1", ValueError]
    for key in keys:
        await queue.put(key, value)
    await queue.put(True, value)  # as in a dict it is 1
    assert await queue.available_keys() == set(keys)
    assert (await queue.peek(None)) is value
    got, same, lease = await queue.take(None)
    assert (got, same is value) == (None, True)
    await queue.release(lease)
    assert await drained(queue) == [1, (1, frozenset({"x"})), "1", ValueError, None]


async def test_queues_of_their_own_do_not_take_each_others_leases() -> None:
    mine, other = LeasedKeyQueue[str, int](), LeasedKeyQueue[str, int]()
    for queue in (mine, other):
        await queue.put("a", 1)
    _, _, lease = await mine.get()
    await other.get()
    with pytest.raises(InvalidLeaseError):
        await other.ack(lease)
    assert await other.inflight_size() == 1


async def test_a_misspelt_policy_is_refused() -> None:
    queue = LeasedKeyQueue[str, int]()
    with pytest.raises(ValueError, match="bufer"):
        await queue.put("a", 1, if_in_flight="bufer")  # type: ignore[arg-type]
    assert await queue.qsize() == 0


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
async def test_a_lease_of_no_time_is_refused(seconds: float) -> None:
    queue = LeasedKeyQueue[str, int]()
    await queue.put("a", 1)
    with pytest.raises(ValueError, match="lease_timeout"):
        await queue.get(lease_timeout=seconds)
    with pytest.raises(ValueError, match="default_lease_timeout"):
        LeasedKeyQueue(default_lease_timeout=seconds)
    assert await queue.inflight_size() == 0


@pytest.mark.parametrize("seconds", [float("nan"), "1", True])
async def test_a_time_out_that_is_no_number_is_refused_at_once_whatever_waits(seconds: Any) -> None:
    queue = LeasedKeyQueue[str, int]()
    for _ in range(2):
        for call in (queue.get(seconds), queue.take("a", seconds), queue.put("b", 1, timeout=seconds)):
            with pytest.raises((ValueError, TypeError), match="timeout must be"):
                await call
        await queue.put("a", 1)
    assert await queue.inflight_size() == 0


async def test_a_negative_time_out_does_not_wait() -> None:
    with pytest.raises(TimeoutError):
        await LeasedKeyQueue[str, int]().get(-1.0)


def reachable(start: object) -> int:
    """How many objects it keeps, but for what the program has anyway."""
    seen, todo = {id(start)}, [start]
    while todo:
        for found in gc.get_referents(todo.pop()):
            if id(found) not in seen and not isinstance(found, type) and type(found).__name__ not in {"module", "function", "dict_keys"}:
                seen.add(id(found))
                todo.append(found)
    return len(seen)


async def test_nothing_is_kept_of_what_is_done() -> None:
    queue = LeasedKeyQueue[str, Any]()
    kept = []

    class Value:
        pass

    for cycles in (1, 50, 500):
        for number in range(cycles):
            value = Value()
            gone = weakref.ref(value)
            await queue.put(f"{number}", value)
            del value
            await queue.ack((await queue.get())[2])
            assert gone() is None
        store = queue.client.store
        kept.append(reachable([vars(queue)["_store"], store._tables]))  # type: ignore[attr-defined]
    assert kept[2] <= kept[1] + 5, "an acknowledged item left something behind"


async def test_a_put_wakes_one_of_many_who_wait() -> None:
    queue = LeasedKeyQueue[str, int]()
    waiting = [asyncio.create_task(queue.get()) for _ in range(100)]
    await asyncio.sleep(0)
    waiters, topic = queue.client.store.waiters, queue_topic(queue.name)
    assert waiters.waiting(topic) == 100
    await queue.put("a", 1)
    assert waiters.waiting(topic) == 99, "one put woke more than one"
    await queue.close()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(outcome, QueueClosedError) for outcome in outcomes) >= 99


async def test_a_key_that_is_waited_for_hears_only_of_itself() -> None:
    queue = LeasedKeyQueue[str, int]()
    waiting = asyncio.create_task(queue.take("b"))
    await asyncio.sleep(0)
    await queue.put("a", 1)
    await asyncio.sleep(0)
    assert not waiting.done()
    await queue.put("b", 2)
    assert (await waiting)[:2] == ("b", 2)


def test_threads_with_event_loops_of_their_own_share_a_queue() -> None:
    queue = LeasedKeyQueue[int, int]()
    taken: list[int] = []

    async def consume() -> None:
        while True:
            key, _, lease = await queue.get()
            if key < 0:
                await queue.release(lease)
                return
            await queue.ack(lease)
            taken.append(key)

    async def produce() -> None:
        for key in range(500):
            await queue.put(key, key)
            if key % 50 == 0:
                await asyncio.sleep(0)
        await queue.put(-1, -1)

    threads = [threading.Thread(target=lambda work=work: asyncio.run(work())) for work in (consume, consume, produce)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(taken) == list(range(500))


def test_a_record_knows_whether_it_expired() -> None:
    record = LeaseRecord(Lease("token", "a"), "a", 1, created_at=100.0, timeout=30.0)
    assert (record.is_expired(129.0), record.is_expired(130.0)) == (False, True)
    fresh = LeaseRecord(Lease("token", "a"), "a", 1)
    assert fresh.created_at > 0
    assert not fresh.is_expired(fresh.created_at + 1e9)
