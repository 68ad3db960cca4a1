"""A queue store of the user's own under a queue, and the built-in stores under a program that calls their methods itself."""

import asyncio
import queue as standard
import time
from typing import Any

import pytest
from tenacity import wait_none

from holdfast.errors import ClaimLost
from holdfast.surfaces.localqueue import (
    AtMostOnceDelivery,
    EffectivelyOnceDelivery,
    MemoryIdempotencyStore,
    MemoryQueueStore,
    MemoryResultStore,
    PersistentQueue,
    PriorityOrdering,
    PublishSubscribeRouting,
    QueueMessage,
    QueueStore,
    ReturnStoredResult,
    SQLiteQueueStore,
    StaticFanoutSubscriptions,
    TransactionalOutboxCommit,
    URLQueueStore,
    persistent_async_worker,
    persistent_worker,
    relay_commits,
)
from holdfast.testing.clock import FakeClock
from tests.surfaces.localqueue.own_store import OwnStore


class Wrapper:
    """Adds to a built-in store what a user may want to: hands everything on."""

    def __init__(self, inner: QueueStore) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Counted(MemoryQueueStore):
    """A built-in store with one method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.enqueued = 0

    def enqueue(self, queue: str, value: Any, **options: Any) -> QueueMessage:
        self.enqueued += 1
        return super().enqueue(queue, value, **options)


@pytest.fixture(params=["own", "wrapper", "subclass"])
def own(request: pytest.FixtureRequest) -> Any:
    return {"own": OwnStore, "wrapper": lambda: Wrapper(MemoryQueueStore()), "subclass": Counted}[request.param]()


class TestAQueue:
    def test_puts_gets_and_ends_messages(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own, ordering_policy=PriorityOrdering())
        message = jobs.put({"n": 1}, dedupe_key="k", priority=2)
        assert (message.value, message.queue, message.dedupe_key, message.priority) == ({"n": 1}, "jobs", "k", 2)
        assert jobs.put("again", dedupe_key="k").id == message.id
        assert (jobs.qsize(), jobs.empty(), jobs.inspect(message.id)) == (1, False, message)

        leased = jobs.get_message(leased_by="w1")
        assert (leased.id, leased.state, leased.attempts, leased.leased_by) == (message.id, "inflight", 1, "w1")
        assert jobs.release(leased, error=ValueError("no"))
        assert jobs.dead_letter(jobs.get_message(), error="dead")
        (dead,) = jobs.dead_letters()
        assert dead.last_error == {"type": None, "module": None, "message": "dead"}
        assert jobs.count_dead_letters_older_than(60.0) == 0
        assert jobs.requeue_dead(dead)
        assert jobs.get() == {"n": 1}
        jobs.task_done()
        jobs.join()
        assert jobs.stats().total == 0
        jobs.record_worker_heartbeat("w1")
        assert {*jobs.stats().last_seen_by_worker_id} == {"w1"}

    def test_waits_for_a_message_and_for_room(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own, maxsize=1)
        with pytest.raises(standard.Empty):
            jobs.get(timeout=0.01)
        jobs.put("later", delay=0.02)
        jobs.put("now")
        assert jobs.full()
        with pytest.raises(standard.Full):
            jobs.put("too much", timeout=0.01)
        assert [jobs.get(), jobs.get()] == ["now", "later"]
        assert jobs.purge() == 2

    def test_is_handed_out_at_most_once_if_that_is_asked_for(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own, delivery_policy=AtMostOnceDelivery())
        jobs.put(1)
        assert jobs.get() == 1
        assert jobs.stats().total == 0

    def test_fans_out(self, own: Any) -> None:
        subscribers = StaticFanoutSubscriptions(("a", "b"))
        events = PersistentQueue[Any]("events", store=own, routing_policy=PublishSubscribeRouting(), subscription_policy=subscribers)
        events.put(1)
        assert [events.subscriber_queue(one).get() for one in ("a", "b")] == [1, 1]

    def test_does_not_end_what_was_leased_again(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own, lease_timeout=0.01)
        jobs.put(1)
        stale = jobs.get_message()
        again = jobs.get_message()
        assert again.attempts == 2
        assert not any((jobs.ack(stale), jobs.release(stale), jobs.dead_letter(stale)))
        assert jobs.stats().total == 1

    def test_says_that_no_client_reaches_it(self) -> None:
        jobs = PersistentQueue[Any]("jobs", store=OwnStore())
        with pytest.raises(TypeError, match="OwnStore"):
            relay_commits(jobs)


class TestAWorker:
    def test_handles_retries_and_ends_messages(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own)
        for value in ("flaky", "bad"):
            jobs.put(value)
        calls: list[str] = []

        @persistent_worker(jobs, max_tries=2, wait=wait_none(), worker_id="w1")
        def handle(value: str) -> str:
            calls.append(value)
            if value == "bad" or calls.count("flaky") == 1:
                raise ConnectionError(value)
            return value.upper()

        assert handle() == "FLAKY"
        with pytest.raises(ConnectionError):
            handle()
        assert calls == ["flaky", "flaky", "bad", "bad"]
        (dead,) = jobs.dead_letters()
        assert dead.last_error == {"type": "ConnectionError", "module": "builtins", "message": "bad"}
        assert (jobs.stats().total, {*jobs.stats().last_seen_by_worker_id}) == (1, {"w1"})

    def test_releases_what_fails_if_that_is_asked_for_and_what_is_interrupted(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own)
        jobs.put(1)

        def fail(value: int) -> None:
            raise KeyboardInterrupt if jobs.inspect(message.id).attempts == 1 else ValueError(value)  # type: ignore[union-attr] # it is there

        message = jobs.put(2)
        jobs.ack(jobs.get_message())
        handle = persistent_worker(jobs, max_tries=1, dead_letter_on_failure=False)(fail)
        for error in (KeyboardInterrupt, ValueError):
            with pytest.raises(error):
                handle()
            assert jobs.qsize() == 1

    @pytest.mark.anyio
    async def test_of_tasks_does_too(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own)
        jobs.put("a")

        @persistent_async_worker(jobs, max_tries=1)
        async def handle(value: str) -> str:
            return value.upper()

        assert await handle() == "A"
        assert jobs.stats().total == 0

    @pytest.mark.anyio
    async def test_that_is_cancelled_gives_its_message_back(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own)
        jobs.put("a")
        begun = asyncio.Event()

        @persistent_async_worker(jobs)
        async def handle(_: str) -> None:
            begun.set()
            await asyncio.Event().wait()

        working = asyncio.ensure_future(handle())
        await begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert (jobs.qsize(), jobs.stats().inflight) == (1, 0)

    def test_keeps_ledger_results_and_envelopes_beside_it(self, own: Any) -> None:
        ledger, results = MemoryIdempotencyStore(), MemoryResultStore()
        policy = EffectivelyOnceDelivery(
            idempotency_store=ledger,
            result_policy=ReturnStoredResult(result_store=results),
            commit_policy=TransactionalOutboxCommit(outbox_store=results),
        )
        jobs = PersistentQueue[Any]("jobs", store=own, delivery_policy=policy)
        calls: list[str] = []

        @persistent_worker(jobs)
        def handle(value: str) -> str:
            calls.append(value)
            return value.upper()

        for _ in range(2):
            jobs.put("work", dedupe_key="k")
            assert handle() == "WORK"
        assert calls == ["work"]
        assert results.load("outbox:dedupe:jobs:k")["result"] == "WORK"  # type: ignore[index] # it is there

    def test_that_was_too_slow_says_so(self, own: Any) -> None:
        jobs = PersistentQueue[Any]("jobs", store=own, lease_timeout=0.01)
        jobs.put(1)

        def be_slow(value: int) -> int:
            assert jobs.get_message().value == value
            return value

        with pytest.raises(ClaimLost, match="nobody renews"):
            persistent_worker(jobs)(be_slow)()
        assert jobs.stats().total == 1


def test_a_store_without_all_the_methods_is_refused_by_name() -> None:
    class HalfAStore:
        def enqueue(self, queue: str, value: object, **options: object) -> None: ...

    with pytest.raises(TypeError, match="no method dequeue, get, ack"):
        PersistentQueue[int]("jobs", store=HalfAStore())  # type: ignore[arg-type] # that is the test


def test_a_subclass_of_a_built_in_store_is_heeded() -> None:
    counted = Counted()
    PersistentQueue[int]("jobs", store=counted).put(1)
    assert counted.enqueued == 1


class TestTheMethodsOfBuiltInStores:
    """As a program calls them that was written to localqueue's stores."""

    def test_a_message_goes_its_way(self, store: URLQueueStore) -> None:
        now = time.time()
        message = store.enqueue("jobs", {"n": 1}, available_at=now, dedupe_key="k", priority=3)
        assert store.enqueue("jobs", "again", available_at=now, dedupe_key="k").id == message.id
        assert store.get("jobs", message.id) == message
        assert (store.qsize("jobs", now=now), store.empty("jobs", now=now), store.stats("jobs", now=now).ready) == (1, False, 1)

        leased = store.dequeue("jobs", lease_timeout=30.0, now=now, leased_by="w1")
        assert leased is not None
        assert (leased.id, leased.value, leased.attempts, leased.leased_by) == (message.id, {"n": 1}, 1, "w1")
        assert store.dequeue("jobs", lease_timeout=30.0, now=now) is None
        assert store.release("jobs", message.id, available_at=now, last_error={"type": "E", "module": "m", "message": "no"}, failed_at=now)
        assert store.dequeue("jobs", lease_timeout=30.0, now=now) is not None
        assert store.dead_letter("jobs", message.id, last_error={"type": "E", "module": "m", "message": "dead"})
        (dead,) = store.dead_letters("jobs", limit=1)
        assert dead.last_error == {"type": "E", "module": "m", "message": "dead"}
        assert store.requeue_dead("jobs", message.id, available_at=now)
        assert not store.requeue_dead("jobs", message.id, available_at=now)
        assert store.dequeue("jobs", lease_timeout=30.0, now=now) is not None
        assert store.ack("jobs", message.id)
        assert not store.ack("jobs", message.id)
        store.record_worker_heartbeat("jobs", "w1", now=now)
        assert store.stats("jobs", now=now).last_seen_by_worker_id == {"w1": now}

    def test_a_message_of_the_future_waits(self, store: URLQueueStore, clock: FakeClock) -> None:
        store.enqueue("jobs", 1, available_at=time.time() + 60.0)
        assert store.dequeue("jobs", lease_timeout=30.0, now=time.time()) is None
        clock.advance(61.0)
        assert store.dequeue("jobs", lease_timeout=30.0, now=time.time()) is not None

    def test_dead_letters_are_pruned_by_their_age_at_a_moment(self, store: URLQueueStore) -> None:
        message = store.enqueue("jobs", 1, available_at=time.time())
        assert store.dead_letter("jobs", message.id)
        assert store.count_dead_letters_older_than("jobs", older_than=60.0, now=time.time()) == 0
        assert store.count_dead_letters_older_than("jobs", older_than=60.0, now=time.time() + 61.0) == 1
        assert store.prune_dead_letters("jobs", older_than=60.0, now=time.time() + 61.0) == 1
        store.enqueue("jobs", 2, available_at=0.0)
        assert store.purge("jobs") == 1

    @pytest.mark.parametrize("act", ["ack", "release", "dead_letter"])
    def test_a_stale_holder_changes_nothing(self, store: URLQueueStore, clock: FakeClock, act: str) -> None:
        """Who leased the message is told by the store object that leased it: another process has another one."""
        other = URLQueueStore(store.client)
        message = store.enqueue("jobs", 1, available_at=0.0)
        assert store.dequeue("jobs", lease_timeout=30.0, now=0.0) is not None
        clock.advance(30.0)
        assert other.dequeue("jobs", lease_timeout=30.0, now=0.0) is not None
        options = {"available_at": 0.0} if act == "release" else {}
        assert not getattr(store, act)("jobs", message.id, **options)
        assert not getattr(URLQueueStore(store.client), act)("jobs", message.id, **options)
        assert getattr(other, act)("jobs", message.id, **options)

    def test_a_bad_name_is_refused_at_once(self) -> None:
        with pytest.raises(ValueError, match="':'"):
            MemoryQueueStore().enqueue("a:b", 1, available_at=0.0)

    def test_they_share_queues_with_queue_objects(self, tmp_path: Any) -> None:
        store: QueueStore = SQLiteQueueStore(tmp_path / "jobs.sqlite3")
        store.enqueue("jobs", 1, available_at=0.0)
        assert PersistentQueue[int]("jobs", store=store).get() == 1
