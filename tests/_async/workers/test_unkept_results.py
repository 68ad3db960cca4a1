"""Results that cannot be kept: what ran is done all the same, and nothing repeats it."""

import logging
import math
from typing import Any

import pytest

from holdfast import Bury, JobContext, ResultNotKept
from holdfast._async.handles.once import AsyncOnce
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together, Write
from holdfast.testing.clock import FakeClock
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio

MIB = 2**20

UNKEPT = {
    "an object": object(),
    "not a number": math.nan,
    "a lone surrogate": "\ud800",
    "too large": "x" * (2 * MIB),
    "too large for the ledger alone": "x" * (MIB - 10),
}

each = pytest.mark.parametrize("result", UNKEPT.values(), ids=UNKEPT)


@each
async def test_a_function_whose_result_cannot_be_kept_is_not_called_again(
    client: ControlPlaneClient, result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    async def pay() -> Any:
        calls.append("paid")
        return result

    ledger = AsyncOnce("pay", client=client)
    with caplog.at_level(logging.WARNING, "holdfast.once"):
        assert await ledger.run("order", pay) is result
    assert "was done and will not be repeated, but its result cannot be kept" in caplog.text
    with pytest.raises(ResultNotKept, match="was done, but its result could not be kept: ") as caught:
        await ledger.run("order", pay)
    known = await ledger.get("order")
    assert known is not None
    assert (calls, known.state, known.missing) == (["paid"], "done", caught.value.reason)


@each
async def test_a_job_whose_result_cannot_be_kept_is_not_run_again(
    client: ControlPlaneClient, clock: FakeClock, result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    async def pay(order: int) -> Any:
        calls.append(order)
        return result

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, results=True)
    job = await worker.put(1, id="one")
    with caplog.at_level(logging.WARNING, "holdfast.worker"):
        await worker.run(until_empty=True)
    assert "job one of queue 'jobs' is done, but its result cannot be kept: " in caplog.text
    clock.advance(1000.0)
    await worker.run(until_empty=True)
    assert (calls, (await AsyncQueue[int]("jobs", client=client).stats()).total) == ([1], 0)
    with pytest.raises(ResultNotKept, match="job one of queue 'jobs' was done, but its result could not be kept: "):
        await job.result()


@pytest.mark.parametrize("option", ["idempotent", "results"])
async def test_a_worker_that_keeps_results_for_one_reason_repeats_nothing_either(
    client: ControlPlaneClient, clock: FakeClock, option: str
) -> None:
    calls: list[int] = []

    async def pay(order: int) -> object:
        calls.append(order)
        return object()

    options: Any = {option: True}
    worker = AsyncWorker(pay, "jobs", client=client, **options)
    await worker.put(1)
    for _ in range(2):
        await worker.run(until_empty=True)
        clock.advance(1000.0)
    assert (calls, (await AsyncQueue[int]("jobs", client=client).stats()).total) == ([1], 0)


async def test_a_repetition_of_a_job_without_a_result_says_why_there_is_none(client: ControlPlaneClient) -> None:
    calls: list[int] = []

    async def pay(order: int) -> object:
        calls.append(order)
        return object()

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same", results=True)
    await worker.put(1)
    await worker.run(until_empty=True)
    again = await worker.put(1)
    await worker.run(until_empty=True)
    assert calls == [1]
    with pytest.raises(ResultNotKept, match="TypeError"):
        await again.result()


async def test_a_result_that_only_the_store_refuses_is_missing_and_the_job_is_done(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    async def pay(order: int) -> str:
        calls.append(order)
        return "too much for this store"

    async def execute(command: Any) -> Any:
        writes = [one for one in command.commands if isinstance(one, Write)] if isinstance(command, Together) else []
        if any(change.value and b"too much" in bytes(change.value) for write in writes for change in write.changes):
            raise ValueError("value is 27 bytes encoded, more than the limit of 20")
        return await client.async_store.execute(command)

    worker = AsyncWorker(pay, "jobs", client=client, results=True, idempotent=True)
    job = await worker.put(1)
    for _ in range(2):
        shift = worker._begin(until_empty=True)
        shift._queues[0]._store = Detour(client.async_store, execute)
        await shift.run()
        clock.advance(1000.0)
    assert calls == [1]
    with pytest.raises(ResultNotKept, match="the limit of 20"):
        await job.result()


async def test_an_idempotent_job_whose_followers_are_refused_is_unknown_and_not_run_again(
    client: ControlPlaneClient, clock: FakeClock
) -> None:
    calls: list[int] = []
    await (await AsyncQueue.create("next", maxsize=1, client=client)).put("first")

    async def pay(order: int, job: JobContext) -> None:
        calls.append(order)
        job.put("next", order)

    worker = AsyncWorker(pay, "jobs", client=client, idempotent=True)
    await worker.put(1, id="one")
    for _ in range(3):
        await worker.run(until_empty=True)
        clock.advance(1000.0)
    (letter,) = await AsyncQueue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("ExecutionUnknown")
    assert (calls, (await AsyncOnce("jobs-once", client=client).get("one")).state) == ([1], "unknown")  # type: ignore[union-attr]


async def test_an_error_whose_text_no_store_can_keep_ends_its_job_all_the_same(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise Bury("bad \ud800 text")

    worker = AsyncWorker(handle, "jobs", client=client, results=True)
    await worker.put(1)
    await worker.run(until_empty=True)
    (letter,) = await AsyncQueue[int]("jobs", client=client).dead_letters()
    assert letter.last_error == "bad \ufffd text"
