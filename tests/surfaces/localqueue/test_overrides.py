"""Workers call the methods that a subclass of the queue has in place of ours, and lose nothing by it."""

from typing import Any

import pytest
from tenacity import wait_none

from holdfast.surfaces.localqueue import (
    AtMostOnceDelivery,
    EffectivelyOnceDelivery,
    MemoryQueueStore,
    PersistentQueue,
    QueueMessage,
    URLIdempotencyStore,
    URLQueueStore,
    persistent_async_worker,
    persistent_worker,
)
from holdfast.testing.clock import FakeClock
from tests.runners import Runner

LEASE_S = 30.0


class Told(PersistentQueue[Any]):
    """Notes what is asked of it, and does it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.told: list[tuple[str, Any]] = []

    def get_message(self, *args: Any, **options: Any) -> QueueMessage:
        message = super().get_message(*args, **options)
        self.told.append(("get_message", message.value))
        return message

    def ack(self, message: QueueMessage) -> bool:
        self.told.append(("ack", message.value))
        return super().ack(message)

    def release(self, message: QueueMessage, *args: Any, **options: Any) -> bool:
        self.told.append(("release", str(options.get("error"))))
        return super().release(message, *args, **options)

    def dead_letter(self, message: QueueMessage, *args: Any, **options: Any) -> bool:
        self.told.append(("dead_letter", str(options.get("error"))))
        return super().dead_letter(message, *args, **options)

    def record_worker_heartbeat(self, worker_id: str) -> None:
        self.told.append(("heartbeat", worker_id))
        super().record_worker_heartbeat(worker_id)


def fail(value: str) -> None:
    raise ConnectionError(value)


def test_a_success_is_acknowledged_by_the_subclass(store: URLQueueStore) -> None:
    jobs = Told("jobs", store=store)
    jobs.put("work")
    assert persistent_worker(jobs, worker_id="w1")(str.upper)() == "WORK"
    assert jobs.told == [("heartbeat", "w1"), ("get_message", "work"), ("ack", "work")]
    assert (jobs.stats().total, jobs.stats().leases_by_worker_id) == (0, {"w1": 1})


@pytest.mark.parametrize(("buries", "method", "left"), [(True, "dead_letter", "dead"), (False, "release", "ready")])
def test_a_failure_is_ended_by_the_subclass(*, buries: bool, method: str, left: str) -> None:
    jobs = Told("jobs", store=MemoryQueueStore())
    message = jobs.put("work")
    with pytest.raises(ConnectionError):
        persistent_worker(jobs, max_tries=2, wait=wait_none(), dead_letter_on_failure=buries)(fail)()
    assert jobs.told == [("get_message", "work"), (method, "work")]
    kept = jobs.inspect(message.id)
    assert kept is not None
    assert (kept.state, kept.last_error) == (left, {"type": "ConnectionError", "module": "builtins", "message": "work"})


@pytest.mark.anyio
@pytest.mark.usefixtures("closed_in_loop")
async def test_workers_of_tasks_call_it_too(store: URLQueueStore) -> None:
    jobs = Told("jobs", store=store)
    jobs.put("work")

    @persistent_async_worker(jobs, worker_id="w1")
    async def handle(value: str) -> str:
        return value.upper()

    assert await handle() == "WORK"
    assert [what for what, _ in jobs.told] == ["heartbeat", "get_message", "ack"]
    assert jobs.stats().total == 0


def test_what_is_kept_is_still_one_step_with_the_acknowledgement() -> None:
    """A subclass that fails in its own part of the acknowledgement: the ledger must not say that it succeeded."""
    store = MemoryQueueStore()
    ledger = URLIdempotencyStore(store.client)

    class Failing(PersistentQueue[Any]):
        def ack(self, message: QueueMessage) -> bool:
            super().ack(message)
            raise OSError("the audit log is away")

    jobs = Failing("jobs", store=store, delivery_policy=EffectivelyOnceDelivery(idempotency_store=ledger))
    jobs.put("work", dedupe_key="k")
    with pytest.raises(OSError, match="audit"):
        persistent_worker(jobs)(str.upper)()
    record = ledger.load("dedupe:jobs:k")
    assert record is not None
    assert (record.status, jobs.stats().total) == ("pending", 1)


def test_a_message_that_a_subclass_got_is_renewed(clock: FakeClock, store: URLQueueStore) -> None:
    jobs = Told("jobs", store=store)
    message = jobs.put("work")

    def is_renewed() -> bool:
        kept = jobs.inspect(message.id)
        return kept is not None and kept.leased_until == clock.wall_us() / 1_000_000 + LEASE_S

    def be_slow(value: str) -> str:
        for _ in range(6):
            clock.advance(LEASE_S / 3)
            # The renewal runs beside the handler: wait until it is seen.
            runner.until(is_renewed)
        return value.upper()

    with Runner() as runner:
        assert persistent_worker(jobs)(be_slow)() == "WORK"
    assert jobs.stats().total == 0


def test_a_message_that_kills_its_workers_is_dead_at_its_budget_in_a_subclass_too(clock: FakeClock, store: URLQueueStore) -> None:
    jobs = Told("jobs", store=store)
    message = jobs.put("work")

    for _ in range(2):
        jobs.get_message()
        clock.advance(LEASE_S)
    jobs.put("next")
    assert persistent_worker(jobs, max_tries=2)(str.upper)() == "NEXT"
    kept = jobs.inspect(message.id)
    assert kept is not None
    assert kept.state == "dead"


def test_a_message_of_the_subclass_s_own_making_is_handled() -> None:
    class Made(PersistentQueue[Any]):
        def get_message(self, *_: Any, **__: Any) -> QueueMessage:
            return QueueMessage("made", "work", "jobs")

        def ack(self, message: QueueMessage) -> bool:
            acked.append(message.id)
            return True

    acked: list[str] = []
    assert persistent_worker(Made("jobs", store=MemoryQueueStore()))(str.upper)() == "WORK"
    assert acked == ["made"]


def test_delivered_at_most_once_it_is_got_by_the_subclass_and_gone() -> None:
    jobs = Told("jobs", store=MemoryQueueStore(), delivery_policy=AtMostOnceDelivery())
    jobs.put("work")
    with pytest.raises(ConnectionError):
        persistent_worker(jobs, max_tries=1)(fail)()
    assert (jobs.told, jobs.stats().total) == ([("get_message", "work")], 0)
