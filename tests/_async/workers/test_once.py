"""Effects once: a repetition answers the stored result, and a death leaves an open question."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import MISSING, ExecutionRunning, ExecutionUnknown
from holdfast._async.flows.once import AsyncOnceRun, record
from holdfast._async.handles.once import AsyncOnce, once
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, encode_key
from holdfast.commands import Acquire, Browse, Change, Claim, Settle, Together, Write
from holdfast.testing.clock import FakeClock
from holdfast.workers.once_record import LedgerEntry
from tests.runners import AsyncGate, AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio


async def test_the_second_time_the_stored_result_is_answered(client: ControlPlaneClient) -> None:
    calls: list[str] = []

    async def pay() -> dict[str, int]:
        calls.append("paid")
        return {"receipt": 7}

    for _ in range(3):
        assert await once(("order", 1), pay, client=client) == {"receipt": 7}
    assert calls == ["paid"]


async def test_while_somebody_does_it_nobody_else_does(client: ControlPlaneClient) -> None:
    began, gate = AsyncGate(), AsyncGate()

    async def pay() -> int:
        began.open()
        await gate.wait()
        return 7

    async def again() -> int:
        raise AssertionError("not reached")

    ledger = AsyncOnce(client=client)
    async with AsyncRunner() as runner:
        first = runner.start(lambda: ledger.run("order", pay))
        await began.wait()
        with pytest.raises(ExecutionRunning):
            await ledger.run("order", again, timeout_s=0)
        with pytest.raises(ExecutionRunning):
            await ledger.forget("order")
        assert (await ledger.get("order")).state == "running"  # type: ignore[union-attr]
        second = runner.start(lambda: ledger.run("order", again))
        gate.open()
        assert await first.result() == 7
        assert await second.result() == 7


async def test_a_function_that_raises_may_be_called_again(client: ControlPlaneClient) -> None:
    async def decline() -> int:
        raise ValueError("no money")

    async def pay() -> int:
        return 7

    ledger = AsyncOnce(client=client)
    with pytest.raises(ValueError, match="no money"):
        await ledger.run("order", decline)
    assert await ledger.get("order") is None
    assert await ledger.run("order", pay) == 7


async def test_a_death_is_unknown_until_somebody_says_what_happened(client: ControlPlaneClient, clock: FakeClock) -> None:
    ledger = AsyncOnce(client=client, lease_s=30.0)

    async def pay() -> int:
        return 7

    await die_in_the_middle(client, "order")
    with pytest.raises(ExecutionRunning):
        await ledger.run("order", pay, timeout_s=0)
    clock.advance(31.0)
    with pytest.raises(ExecutionUnknown, match="it may have happened"):
        await ledger.run("order", pay)
    assert (await ledger.get("order")).state == "unknown"  # type: ignore[union-attr]
    assert await ledger.resolve("order", 9)
    assert await ledger.run("order", pay) == 9
    assert await ledger.forget("order")
    assert await ledger.run("order", pay) == 7
    assert not await ledger.forget("another")


async def die_in_the_middle(client: ControlPlaneClient, key: str) -> None:
    """Leave what a process leaves that was killed inside its function: a note, and a lease that nobody renews."""
    begun = LedgerEntry("started", "lease-of-the-dead", "the dead").raw
    await client.async_store.execute(Acquire("once", encode_key(key), "the dead", "lease-of-the-dead", 30.0, begun))


async def test_a_result_is_forgotten_after_its_time(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    async def pay() -> int:
        calls.append(len(calls))
        return len(calls)

    ledger = AsyncOnce(client=client, keep_s=60.0)
    assert await ledger.run("order", pay) == 1
    clock.advance(59.0)
    assert await ledger.run("order", pay) == 1
    clock.advance(2.0)
    assert await ledger.run("order", pay) == 2


async def test_a_worker_does_a_key_once_and_repeats_get_the_stored_result(client: ControlPlaneClient) -> None:
    calls: list[Any] = []

    async def pay(order: dict[str, int]) -> int:
        calls.append(order["id"])
        return 100 + order["id"]

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda order: order["id"], results=True)
    jobs = await worker.put_many([{"id": 1}, {"id": 2}])
    await worker.run(until_empty=True)
    jobs += await worker.put_many([{"id": 1}, {"id": 2}])
    await worker.run(until_empty=True)
    assert sorted(calls) == [1, 2]
    assert [await job.result() for job in jobs] == [101, 102, 101, 102]


async def test_two_messages_with_one_key_never_run_at_once(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    async def pay(order: int) -> int:
        calls.append(order)
        return order

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same", concurrency=4)
    await worker.put_many([1, 2, 3])
    for _ in range(3):
        await worker.run(until_empty=True)
        clock.advance(2.0)
    assert calls == [1]
    assert (await AsyncQueue[int]("jobs", client=client).stats()).total == 0


async def test_while_one_worker_does_a_key_another_puts_it_off(client: ControlPlaneClient, clock: FakeClock) -> None:
    began, gate = AsyncGate(), AsyncGate()
    calls: list[int] = []

    async def pay(order: int) -> int:
        calls.append(order)
        began.open()
        await gate.wait()
        return order

    first = AsyncWorker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same")
    queue = AsyncQueue[int]("jobs", client=client)
    await first.put_many([1, 2])
    async with first:
        await began.wait()
        await first.changed(name="second").run(until_empty=True)
        stats = await queue.stats()
        assert (stats.leased, stats.delayed, stats.dead) == (1, 1, 0)
        gate.open()
    clock.advance(2.0)
    await first.run(until_empty=True)
    assert (calls, (await queue.stats()).total) == ([1], 0)


async def test_a_job_that_failed_is_run_again(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    async def pay(order: int) -> int:
        calls.append(order)
        if len(calls) < 3:
            raise ValueError("not yet")
        return order

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True)
    await worker.put(1, id="one")
    for _ in range(3):
        await worker.run(until_empty=True)
        clock.advance(1000.0)
    assert calls == [1, 1, 1]
    assert (await AsyncOnce("jobs-once", client=client).get("one")).state == "done"  # type: ignore[union-attr]


async def die_as_a_worker(client: ControlPlaneClient) -> None:
    """Leave what a worker leaves that was killed inside its handler."""
    claimed = await client.async_store.execute(Claim("jobs", "the dead", 30.0))
    (message,) = claimed.messages
    begun = LedgerEntry("started", message.receipt.claim_id, "the dead").raw
    await client.async_store.execute(Write("jobs-once", [Change(encode_key(message.id), value=begun, expect="absent")]))


async def test_a_died_execution_is_buried_as_unknown_until_it_is_reconciled(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    async def pay(order: int) -> int:
        calls.append(order)
        return order

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, results=True)
    queue, ledger = AsyncQueue[int]("jobs", client=client), AsyncOnce("jobs-once", client=client)
    job = await worker.put(1, id="one")
    await die_as_a_worker(client)
    clock.advance(31.0)
    await worker.run(until_empty=True)
    (letter,) = await queue.dead_letters()
    assert (letter.last_error or "").startswith("ExecutionUnknown")
    assert calls == []
    await queue.redrive()
    await worker.run(until_empty=True)
    assert calls == [], "a redrive alone does not make it known"
    assert await ledger.resolve("one", 42)
    await queue.redrive()
    await worker.run(until_empty=True)
    assert (calls, await job.result()) == ([], 42)


@pytest.mark.parametrize("happened", [True, False])
async def test_a_reconciler_says_whether_it_happened(client: ControlPlaneClient, clock: FakeClock, happened: bool) -> None:  # noqa: FBT001
    calls: list[int] = []

    async def pay(order: int) -> int:
        calls.append(order)
        return 7

    async def look(order: int) -> Any:
        return 42 if happened else MISSING

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, results=True, reconcile=look)
    job = await worker.put(1)
    await die_as_a_worker(client)
    clock.advance(31.0)
    await worker.run(until_empty=True)
    assert (calls, await job.result()) == (([], 42) if happened else ([1], 7))


async def begin_as_a_worker(client: ControlPlaneClient) -> Any:
    """Begin the job of key `same` as another worker does; what ends it comes back, for a later moment."""
    await AsyncQueue[int]("jobs", client=client).put(1)
    (message,) = (await client.async_store.execute(Claim("jobs", "another", 30.0))).messages
    begun = LedgerEntry("started", message.receipt.claim_id, "another")
    await client.async_store.execute(Write("jobs-once", [Change(encode_key("same"), value=begun.raw, expect="absent")]))
    done = LedgerEntry("done", message.receipt.claim_id, "another", JSON.encode(7))
    return Together([Settle([message.receipt]), Write("jobs-once", [Change(encode_key("same"), value=done.raw)])])


def ending_before_the_second_look(client: ControlPlaneClient, ending: Any) -> Any:
    """A store where the other execution ends after its ledger entry was read, and before anything more is looked at."""
    left = [ending]

    async def execute(command: Any) -> Any:
        reads = command.commands if isinstance(command, Together) else [command]
        if left and any(isinstance(read, Browse) for read in reads):
            await client.async_store.execute(left.pop())
        return await client.async_store.execute(command)

    return Detour(client.async_store, execute)


async def test_a_job_that_another_worker_finishes_at_this_moment_is_done_and_not_unknown(client: ControlPlaneClient) -> None:
    async def pay(order: int) -> int:
        raise AssertionError("not reached")

    store = ending_before_the_second_look(client, await begin_as_a_worker(client))
    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same", results=True)
    job = await worker.put(2)
    shift = worker._begin(until_empty=True)
    shift._queues[0]._store = store
    await shift.run()
    assert await AsyncQueue[int]("jobs", client=client).dead_letters() == []
    assert await job.result() == 7


async def test_what_is_known_of_something_that_ends_at_this_moment_is_that_it_is_done(client: ControlPlaneClient) -> None:
    store = ending_before_the_second_look(client, await begin_as_a_worker(client))
    known = await record(store, "jobs-once", encode_key("same"), JSON)
    assert known is not None
    assert (known.state, known.result) == ("done", 7)


async def test_running_something_that_ends_at_this_moment_answers_its_result(client: ControlPlaneClient) -> None:
    async def pay() -> int:
        raise AssertionError("not reached")

    store = ending_before_the_second_look(client, await begin_as_a_worker(client))
    reached: Any = SimpleNamespace(async_store=store, keepalive=client.keepalive)
    run = AsyncOnceRun(reached, "jobs-once", encode_key("same"), "me", 30.0)
    assert await run.run(pay, JSON, timeout_s=0.0, keep_s=None) == 7
