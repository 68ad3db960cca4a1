# Generated from tests/_async/workers/test_once.py by tools/unasync.py; do not edit.
"""Effects once: a repetition answers the stored result, and a death leaves an open question."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import MISSING, ExecutionRunning, ExecutionUnknown
from holdfast._sync.flows.once import OnceRun, record
from holdfast._sync.handles.once import Once, once
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, encode_key
from holdfast.commands import Acquire, Browse, Change, Claim, Settle, Together, Write
from holdfast.testing.clock import FakeClock
from holdfast.workers.once_record import LedgerEntry
from tests.runners import Gate, Runner
from tests.workers.detours import Detour


def test_the_second_time_the_stored_result_is_answered(client: ControlPlaneClient) -> None:
    calls: list[str] = []

    def pay() -> dict[str, int]:
        calls.append("paid")
        return {"receipt": 7}

    for _ in range(3):
        assert once(("order", 1), pay, client=client) == {"receipt": 7}
    assert calls == ["paid"]


def test_while_somebody_does_it_nobody_else_does(client: ControlPlaneClient) -> None:
    began, gate = Gate(), Gate()

    def pay() -> int:
        began.open()
        gate.wait()
        return 7

    def again() -> int:
        raise AssertionError("not reached")

    ledger = Once(client=client)
    with Runner() as runner:
        first = runner.start(lambda: ledger.run("order", pay))
        began.wait()
        with pytest.raises(ExecutionRunning):
            ledger.run("order", again, timeout_s=0)
        with pytest.raises(ExecutionRunning):
            ledger.forget("order")
        assert (ledger.get("order")).state == "running"  # type: ignore[union-attr]
        second = runner.start(lambda: ledger.run("order", again))
        gate.open()
        assert first.result() == 7
        assert second.result() == 7


def test_a_function_that_raises_may_be_called_again(client: ControlPlaneClient) -> None:
    def decline() -> int:
        raise ValueError("no money")

    def pay() -> int:
        return 7

    ledger = Once(client=client)
    with pytest.raises(ValueError, match="no money"):
        ledger.run("order", decline)
    assert ledger.get("order") is None
    assert ledger.run("order", pay) == 7


def test_a_death_is_unknown_until_somebody_says_what_happened(client: ControlPlaneClient, clock: FakeClock) -> None:
    ledger = Once(client=client, lease_s=30.0)

    def pay() -> int:
        return 7

    die_in_the_middle(client, "order")
    with pytest.raises(ExecutionRunning):
        ledger.run("order", pay, timeout_s=0)
    clock.advance(31.0)
    with pytest.raises(ExecutionUnknown, match="it may have happened"):
        ledger.run("order", pay)
    assert (ledger.get("order")).state == "unknown"  # type: ignore[union-attr]
    assert ledger.resolve("order", 9)
    assert ledger.run("order", pay) == 9
    assert ledger.forget("order")
    assert ledger.run("order", pay) == 7
    assert not ledger.forget("another")


def die_in_the_middle(client: ControlPlaneClient, key: str) -> None:
    """Leave what a process leaves that was killed inside its function: a note, and a lease that nobody renews."""
    begun = LedgerEntry("started", "lease-of-the-dead", "the dead").raw
    client.store.execute(Acquire("once", encode_key(key), "the dead", "lease-of-the-dead", 30.0, begun))


def test_a_result_is_forgotten_after_its_time(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    def pay() -> int:
        calls.append(len(calls))
        return len(calls)

    ledger = Once(client=client, keep_s=60.0)
    assert ledger.run("order", pay) == 1
    clock.advance(59.0)
    assert ledger.run("order", pay) == 1
    clock.advance(2.0)
    assert ledger.run("order", pay) == 2


def test_a_worker_does_a_key_once_and_repeats_get_the_stored_result(client: ControlPlaneClient) -> None:
    calls: list[Any] = []

    def pay(order: dict[str, int]) -> int:
        calls.append(order["id"])
        return 100 + order["id"]

    worker = Worker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda order: order["id"], results=True)
    jobs = worker.put_many([{"id": 1}, {"id": 2}])
    worker.run(until_empty=True)
    jobs += worker.put_many([{"id": 1}, {"id": 2}])
    worker.run(until_empty=True)
    assert sorted(calls) == [1, 2]
    assert [job.result() for job in jobs] == [101, 102, 101, 102]


def test_two_messages_with_one_key_never_run_at_once(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    def pay(order: int) -> int:
        calls.append(order)
        return order

    worker = Worker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same", concurrency=4)
    worker.put_many([1, 2, 3])
    for _ in range(3):
        worker.run(until_empty=True)
        clock.advance(2.0)
    assert calls == [1]
    assert (Queue[int]("jobs", client=client).stats()).total == 0


def test_while_one_worker_does_a_key_another_puts_it_off(client: ControlPlaneClient, clock: FakeClock) -> None:
    began, gate = Gate(), Gate()
    calls: list[int] = []

    def pay(order: int) -> int:
        calls.append(order)
        began.open()
        gate.wait()
        return order

    first = Worker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same")
    queue = Queue[int]("jobs", client=client)
    first.put_many([1, 2])
    with first:
        began.wait()
        first.changed(name="second").run(until_empty=True)
        stats = queue.stats()
        assert (stats.leased, stats.delayed, stats.dead) == (1, 1, 0)
        gate.open()
    clock.advance(2.0)
    first.run(until_empty=True)
    assert (calls, (queue.stats()).total) == ([1], 0)


def test_a_job_that_failed_is_run_again(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    def pay(order: int) -> int:
        calls.append(order)
        if len(calls) < 3:
            raise ValueError("not yet")
        return order

    worker = Worker(pay, "jobs", client=client, idempotent=True)
    worker.put(1, id="one")
    for _ in range(3):
        worker.run(until_empty=True)
        clock.advance(1000.0)
    assert calls == [1, 1, 1]
    assert (Once("jobs-once", client=client).get("one")).state == "done"  # type: ignore[union-attr]


def die_as_a_worker(client: ControlPlaneClient) -> None:
    """Leave what a worker leaves that was killed inside its handler."""
    claimed = client.store.execute(Claim("jobs", "the dead", 30.0))
    (message,) = claimed.messages
    begun = LedgerEntry("started", message.receipt.claim_id, "the dead").raw
    client.store.execute(Write("jobs-once", [Change(encode_key(message.id), value=begun, expect="absent")]))


def test_a_died_execution_is_buried_as_unknown_until_it_is_reconciled(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    def pay(order: int) -> int:
        calls.append(order)
        return order

    worker = Worker(pay, "jobs", client=client, idempotent=True, results=True)
    queue, ledger = Queue[int]("jobs", client=client), Once("jobs-once", client=client)
    job = worker.put(1, id="one")
    die_as_a_worker(client)
    clock.advance(31.0)
    worker.run(until_empty=True)
    (letter,) = queue.dead_letters()
    assert (letter.last_error or "").startswith("ExecutionUnknown")
    assert calls == []
    queue.redrive()
    worker.run(until_empty=True)
    assert calls == [], "a redrive alone does not make it known"
    assert ledger.resolve("one", 42)
    queue.redrive()
    worker.run(until_empty=True)
    assert (calls, job.result()) == ([], 42)


@pytest.mark.parametrize("happened", [True, False])
def test_a_reconciler_says_whether_it_happened(client: ControlPlaneClient, clock: FakeClock, happened: bool) -> None:  # noqa: FBT001
    calls: list[int] = []

    def pay(order: int) -> int:
        calls.append(order)
        return 7

    def look(order: int) -> Any:
        return 42 if happened else MISSING

    worker = Worker(pay, "jobs", client=client, idempotent=True, results=True, reconcile=look)
    job = worker.put(1)
    die_as_a_worker(client)
    clock.advance(31.0)
    worker.run(until_empty=True)
    assert (calls, job.result()) == (([], 42) if happened else ([1], 7))


def begin_as_a_worker(client: ControlPlaneClient) -> Any:
    """Begin the job of key `same` as another worker does; what ends it comes back, for a later moment."""
    Queue[int]("jobs", client=client).put(1)
    (message,) = (client.store.execute(Claim("jobs", "another", 30.0))).messages
    begun = LedgerEntry("started", message.receipt.claim_id, "another")
    client.store.execute(Write("jobs-once", [Change(encode_key("same"), value=begun.raw, expect="absent")]))
    done = LedgerEntry("done", message.receipt.claim_id, "another", JSON.encode(7))
    return Together([Settle([message.receipt]), Write("jobs-once", [Change(encode_key("same"), value=done.raw)])])


def ending_before_the_second_look(client: ControlPlaneClient, ending: Any) -> Any:
    """A store where the other execution ends after its ledger entry was read, and before anything more is looked at."""
    left = [ending]

    def execute(command: Any) -> Any:
        reads = command.commands if isinstance(command, Together) else [command]
        if left and any(isinstance(read, Browse) for read in reads):
            client.store.execute(left.pop())
        return client.store.execute(command)

    return Detour(client.store, execute)


def test_a_job_that_another_worker_finishes_at_this_moment_is_done_and_not_unknown(client: ControlPlaneClient) -> None:
    def pay(order: int) -> int:
        raise AssertionError("not reached")

    store = ending_before_the_second_look(client, begin_as_a_worker(client))
    worker = Worker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same", results=True)
    job = worker.put(2)
    shift = worker._begin(until_empty=True)
    shift._queues[0]._store = store
    shift.run()
    assert Queue[int]("jobs", client=client).dead_letters() == []
    assert job.result() == 7


def test_what_is_known_of_something_that_ends_at_this_moment_is_that_it_is_done(client: ControlPlaneClient) -> None:
    store = ending_before_the_second_look(client, begin_as_a_worker(client))
    known = record(store, "jobs-once", encode_key("same"), JSON)
    assert known is not None
    assert (known.state, known.result) == ("done", 7)


def test_running_something_that_ends_at_this_moment_answers_its_result(client: ControlPlaneClient) -> None:
    def pay() -> int:
        raise AssertionError("not reached")

    store = ending_before_the_second_look(client, begin_as_a_worker(client))
    reached: Any = SimpleNamespace(store=store, keepalive=client.keepalive)
    run = OnceRun(reached, "jobs-once", encode_key("same"), "me", 30.0)
    assert run.run(pay, JSON, timeout_s=0.0, keep_s=None) == 7
