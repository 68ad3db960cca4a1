"""What the original does wrong, and must not be here: one test for each fault that was found."""

import queue as standard
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tenacity import wait_none

from holdfast.commands import Browse
from holdfast.errors import ClaimLost, QueueFull
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.surfaces.localqueue import (
    EffectivelyOnceDelivery,
    MemoryQueueStore,
    PersistentQueue,
    PriorityOrdering,
    PublishSubscribeRouting,
    QueueMessage,
    ReturnStoredResult,
    SQLiteQueueStore,
    StaticFanoutSubscriptions,
    TransactionalOutboxCommit,
    URLIdempotencyStore,
    URLQueueStore,
    URLResultStore,
    persistent_worker,
)
from holdfast.surfaces.localqueue.messages import looked_at
from holdfast.surfaces.localqueue.policies.commits import LOCAL_ATOMIC_COMMIT
from holdfast.testing.clock import FakeClock
from tests.runners import Runner, waiting_on

LEASE_S = 30.0


@pytest.fixture
def jobs(store: URLQueueStore) -> PersistentQueue[Any]:
    return PersistentQueue("jobs", store=store)


@pytest.mark.parametrize("act", ["ack", "release", "dead_letter"])
def test_a_stale_worker_changes_nothing_of_what_another_holds(jobs: PersistentQueue[Any], clock: FakeClock, act: str) -> None:
    jobs.put("work")
    stale = jobs.get_message(leased_by="slow")
    clock.advance(LEASE_S)
    current = jobs.get_message(leased_by="fast")

    assert getattr(jobs, act)(stale) is False

    found = jobs.inspect(current.id)
    assert found is not None
    assert (found.state, found.leased_by) == ("inflight", "fast")
    assert jobs.ack(current)


def test_a_lease_that_ended_is_lost_even_if_nobody_took_the_message(jobs: PersistentQueue[Any], clock: FakeClock) -> None:
    jobs.put("work")
    stale = jobs.get_message()
    clock.advance(LEASE_S)
    assert not jobs.ack(stale)
    assert jobs.qsize() == 1


def test_priority_wins(store: URLQueueStore, clock: FakeClock) -> None:
    jobs = PersistentQueue[str]("jobs", store=store, ordering_policy=PriorityOrdering())
    jobs.put("first")
    clock.advance(1.0)
    jobs.put("urgent", priority=1)
    assert jobs.get() == "urgent"


def test_a_bounded_put_is_woken_when_another_object_makes_room(store: URLQueueStore) -> None:
    producer = PersistentQueue[int]("jobs", store=store, maxsize=1)
    producer.put(1)
    consumer = PersistentQueue[int]("jobs", store=store)
    with Runner() as runner:
        second = runner.start(producer.put, 2)
        runner.until(lambda: waiting_on(store.client.store, "watch:queue:jobs") == 1)
        consumer.get_message()
        assert second.result().value == 2


def test_a_fan_out_is_all_or_nothing(store: URLQueueStore) -> None:
    subscribers = StaticFanoutSubscriptions(("a", "b"))
    events = PersistentQueue[int](
        "events", store=store, routing_policy=PublishSubscribeRouting(), subscription_policy=subscribers, maxsize=1
    )
    PersistentQueue[int]("events.b", store=store).put(0)

    with pytest.raises(QueueFull):
        events.put(1, timeout=0.01)

    assert events.subscriber_queue("a").qsize() == 0
    with Runner() as runner:
        put = runner.start(events.put, 1)
        runner.until(lambda: waiting_on(store.client.store, "watch:queue:events.b") == 1)
        events.subscriber_queue("b").get_message()
        put.result()
    assert [events.subscriber_queue(name).qsize() for name in "ab"] == [1, 1]


def test_a_dead_letters_key_does_not_swallow_new_work(jobs: PersistentQueue[Any]) -> None:
    jobs.put("old", dedupe_key="k")
    jobs.dead_letter(jobs.get_message())
    assert jobs.put("new", dedupe_key="k").value == "new"
    assert jobs.get() == "new"


def test_the_ledger_tells_queues_apart(store: URLQueueStore) -> None:
    ledger = URLIdempotencyStore(store.client)
    handled: list[str] = []
    for name in ("billing", "audit"):
        queue = PersistentQueue[str](name, store=store, delivery_policy=EffectivelyOnceDelivery(idempotency_store=ledger))
        queue.put(name, dedupe_key="order-1")
        persistent_worker(queue)(handled.append)()
    assert handled == ["billing", "audit"]


@pytest.mark.parametrize("result", [object(), "x" * 2**21], ids=["not JSON", "2 MiB"])
@pytest.mark.parametrize("where", ["inline", "result store", "outbox"])
def test_a_result_that_cannot_be_kept_does_not_repeat_the_effect(
    store: URLQueueStore, where: str, result: object, caplog: pytest.LogCaptureFixture
) -> None:
    kept = URLResultStore(store.client)
    delivery = EffectivelyOnceDelivery(
        idempotency_store=URLIdempotencyStore(store.client),
        result_policy=ReturnStoredResult(result_store=kept if where == "result store" else None),
        commit_policy=TransactionalOutboxCommit(outbox_store=kept) if where == "outbox" else LOCAL_ATOMIC_COMMIT,
    )
    jobs = PersistentQueue[str]("jobs", store=store, delivery_policy=delivery)
    effects = []

    @persistent_worker(jobs, max_tries=1)
    def handle(value: str) -> object:
        effects.append(value)
        return result

    jobs.put("work", dedupe_key="k")
    assert handle() is result
    assert "the result of message" in caplog.text
    jobs.put("work", dedupe_key="k")
    assert handle() is None
    assert effects == ["work"]
    assert jobs.stats().total == 0


def test_task_done_acknowledges_the_message_of_its_own_thread(jobs: PersistentQueue[Any]) -> None:
    jobs.put("of another thread")
    jobs.put("mine")
    with Runner() as runner:
        assert runner.start(jobs.get).result() == "of another thread"
        assert jobs.get() == "mine"
        jobs.task_done()
    assert [message.value for message in leased(jobs)] == ["of another thread"]


def leased(jobs: PersistentQueue[Any]) -> list[QueueMessage]:
    page = jobs.client.store.execute(Browse(jobs.name, state="leased"))
    return [looked_at(message, page.now, 0) for message in page.messages]


def test_a_thread_without_a_message_of_its_own_finishes_the_oldest_of_all(jobs: PersistentQueue[Any]) -> None:
    for value in ("first", "second"):
        jobs.put(value)
        jobs.get()
    with Runner() as runner:
        runner.start(jobs.task_done).result()
    assert [message.value for message in leased(jobs)] == ["second"]
    jobs.task_done()
    with pytest.raises(ValueError, match="too many times"):
        jobs.task_done()


def test_a_new_thread_does_not_inherit_the_message_of_one_that_ended() -> None:
    """Threads get the numbers of threads that ended: so many that one of these does."""
    jobs = PersistentQueue[int]("jobs", store=MemoryQueueStore())
    numbers: list[int] = []

    def fail() -> None:
        numbers.append(threading.get_ident())
        jobs.get()

    def succeed() -> None:
        numbers.append(threading.get_ident())
        jobs.get()
        jobs.task_done()

    while len(set(numbers)) == len(numbers):
        left = len(leased(jobs))
        for body in (fail, succeed):
            jobs.put(len(numbers))
            thread = threading.Thread(target=body)
            thread.start()
            thread.join()
        assert [message.value % 2 for message in leased(jobs)] == [0] * (left + 1)


def test_sizes_see_that_leases_have_ended(jobs: PersistentQueue[Any], clock: FakeClock) -> None:
    jobs.put("work")
    jobs.get_message()
    assert (jobs.qsize(), jobs.empty(), jobs.stats().inflight) == (0, True, 1)
    clock.advance(LEASE_S)
    assert (jobs.qsize(), jobs.empty(), jobs.stats().inflight) == (1, False, 0)


def test_an_interrupt_inside_a_transaction_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SqliteTransaction.execute

    def interrupted(tx: Any, command: Any) -> None:
        whole(tx, command)
        raise KeyboardInterrupt

    store = SQLiteQueueStore(tmp_path / "jobs.sqlite3")
    jobs = PersistentQueue[Any]("jobs", store=store)
    jobs.put("first")
    with monkeypatch.context() as patched:
        patched.setattr(SqliteTransaction, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jobs.put("lost")
    jobs.put("last")
    assert [jobs.get(), jobs.get(), jobs.empty()] == ["first", "last", True]
    store.close()


def test_an_interrupt_inside_a_command_does_not_poison_the_store(tmp_path: Path) -> None:
    """Ctrl-C in the midst of puts: afterwards the same store still works, and has whole messages only."""
    program = """
import itertools, sys
from holdfast.surfaces.localqueue import PersistentQueue, SQLiteQueueStore
queue = PersistentQueue("jobs", store=SQLiteQueueStore(sys.argv[1]))
interrupts = 0
while interrupts < 5:
    try:
        for number in itertools.count():
            queue.put({"x": "y" * 1000})
            if number == 3:
                print("go", flush=True)
    except KeyboardInterrupt:
        interrupts += 1
queue.put("last")
print(queue.stats().ready, flush=True)
"""
    path = tmp_path / "jobs.sqlite3"
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(5):
            assert process.stdout.readline() == "go\n"
            process.send_signal(2)
        ready = int(process.stdout.readline())
    store = SQLiteQueueStore(path)
    assert PersistentQueue[Any]("jobs", store=store).stats().ready == ready
    store.close()


def test_a_step_of_the_wall_clock_neither_hides_nor_delivers_again(jobs: PersistentQueue[Any], clock: FakeClock) -> None:
    jobs.put("work")
    clock.step_wall(-3600.0)
    message = jobs.get_message(block=False)
    clock.step_wall(7200.0)
    with pytest.raises(standard.Empty):
        jobs.get_nowait()
    assert jobs.ack(message)


def test_a_long_handler_is_not_joined_by_a_second_one(jobs: PersistentQueue[Any], clock: FakeClock) -> None:
    message = jobs.put("work")

    @persistent_worker(jobs, max_tries=1)
    def handle(_: str) -> None:
        for _third in range(6):
            clock.advance(LEASE_S / 3)
            runner.until(lambda: renewed_until(jobs, message.id) == clock.wall_us() / 1_000_000 + LEASE_S)
        with pytest.raises(standard.Empty):
            jobs.get_nowait()

    with Runner() as runner:
        handle()
    assert jobs.stats().total == 0


def renewed_until(jobs: PersistentQueue[Any], message_id: str) -> float:
    found = jobs.inspect(message_id)
    return (found and found.leased_until) or 0.0


def test_a_history_does_not_grow_without_end(jobs: PersistentQueue[Any]) -> None:
    message = jobs.put("work")
    for _ in range(60):
        jobs.release(jobs.get_message(), error="again")
    found = jobs.inspect(message.id)
    assert found is not None
    assert found.attempts == 60
    assert len(found.attempt_history) == 40


def test_a_requeued_dead_letter_is_handled(jobs: PersistentQueue[Any]) -> None:
    jobs.put("work")
    calls: list[str] = []

    @persistent_worker(jobs, max_tries=2, wait=wait_none())
    def handle(value: str) -> str:
        calls.append(value)
        if len(calls) <= 2:
            raise ConnectionError
        return "done"

    with pytest.raises(ConnectionError):
        handle()
    (dead,) = jobs.dead_letters()
    jobs.requeue_dead(dead)
    assert handle() == "done"


def test_a_worker_does_not_retry_in_a_lease_that_has_ended(jobs: PersistentQueue[Any], clock: FakeClock) -> None:
    jobs.put("work")
    calls: list[str] = []

    @persistent_worker(jobs, wait=wait_none())
    def handle(value: str) -> None:
        calls.append(value)
        jobs.client.keepalive.close()
        clock.advance(LEASE_S)
        raise ConnectionError

    with pytest.raises(ClaimLost):
        handle()
    assert calls == ["work"]


def test_many_producers_never_exceed_the_limit(store: URLQueueStore) -> None:
    def produce() -> int:
        jobs = PersistentQueue[int]("jobs", store=store, maxsize=10)
        made = 0
        for number in range(10):
            try:
                jobs.put_nowait(number)
            except standard.Full:
                continue
            made += 1
        return made

    with Runner() as runner:
        made = [runner.start(produce) for _ in range(4)]
        assert sum(one.result() for one in made) == 10
    assert PersistentQueue[int]("jobs", store=store).qsize() == 10


def test_a_put_that_another_overtakes_looks_again(store: URLQueueStore) -> None:
    """Between the look at the size and the put: what makes the limit exact is that the second of two puts is refused."""
    other = PersistentQueue[str]("jobs", store=store, maxsize=1)

    class Overtaken:
        maxsize = 1
        overflow = "reject"

        def is_full(self, *, qsize: int) -> bool:
            if qsize == 0:
                other.put("overtakes")
            return qsize >= 1

        def as_dict(self) -> dict[str, object]:
            return {}

    jobs = PersistentQueue[str]("jobs", store=store, backpressure=Overtaken())  # type: ignore[arg-type] # plain attributes will do
    with pytest.raises(standard.Full):
        jobs.put("overtaken")
    assert [jobs.qsize(), jobs.get()] == [1, "overtakes"]


def test_a_limit_is_that_of_the_object_and_counts_what_is_due(store: URLQueueStore, clock: FakeClock) -> None:
    bounded, free = PersistentQueue[str]("jobs", store=store, maxsize=1), PersistentQueue[str]("jobs", store=store)
    bounded.put("later", delay=60.0)
    assert not bounded.full()
    bounded.put_nowait("now")
    assert (bounded.full(), free.full()) == (True, False)
    free.put_nowait("more")
    with pytest.raises(standard.Full):
        bounded.put_nowait("too much")
    free.get_message()
    free.get_message()
    assert not bounded.full()
    clock.advance(LEASE_S)
    assert bounded.full()
    with pytest.raises(standard.Full):
        bounded.put_nowait("two leases have ended")


def test_a_limit_holds_across_processes_and_a_drain_in_one_wakes_a_put_in_another(tmp_path: Path) -> None:
    program = """
import sys
from holdfast.surfaces.localqueue import PersistentQueue, SQLiteQueueStore
queue = PersistentQueue("jobs", store=SQLiteQueueStore(sys.argv[1]), maxsize=2)
try:
    queue.put_nowait("too much")
except Exception as error:
    print(type(error).__name__, flush=True)
print(queue.put("patient").value, flush=True)
"""
    path = tmp_path / "jobs.sqlite3"
    store = SQLiteQueueStore(path)
    jobs = PersistentQueue[str]("jobs", store=store, maxsize=2)
    jobs.put("a")
    jobs.put("b")
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "QueueFull\n"
        assert jobs.get() == "a"
        assert process.stdout.readline() == "patient\n"
    assert [jobs.get(), jobs.get()] == ["b", "patient"]
    store.close()


def test_a_stored_value_is_nobodys_alias() -> None:
    store = MemoryQueueStore()
    jobs = PersistentQueue[Any]("jobs", store=store)
    value = {"items": [1]}
    jobs.put(value)
    value["items"].append(2)
    first = jobs.get_message()
    assert first.value == {"items": [1]}
    first.value["items"].append(3)
    jobs.release(first)
    assert jobs.get() == {"items": [1]}
    store.close()


def test_threads_share_a_queue(jobs: PersistentQueue[Any]) -> None:
    for number in range(40):
        jobs.put(number)
    got: list[int] = []

    def work() -> None:
        while True:
            try:
                got.append(jobs.get_nowait())
            except standard.Empty:
                return
            jobs.task_done()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs.join()
    assert sorted(got) == list(range(40))
    assert jobs.stats().total == 0
