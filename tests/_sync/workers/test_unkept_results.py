# Generated from tests/_async/workers/test_unkept_results.py by tools/unasync.py; do not edit.
"""Results that cannot be kept: what ran is done all the same, and nothing repeats it."""

import logging
import math
from typing import Any

import pytest

from holdfast import Bury, JobContext, ResultNotKept
from holdfast._sync.handles.once import Once
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together, Write
from holdfast.testing.clock import FakeClock
from tests.workers.detours import Detour

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
def test_a_function_whose_result_cannot_be_kept_is_not_called_again(
    client: ControlPlaneClient, result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    def pay() -> Any:
        calls.append("paid")
        return result

    ledger = Once("pay", client=client)
    with caplog.at_level(logging.WARNING, "holdfast.once"):
        assert ledger.run("order", pay) is result
    assert "was done and will not be repeated, but its result cannot be kept" in caplog.text
    with pytest.raises(ResultNotKept, match="was done, but its result could not be kept: ") as caught:
        ledger.run("order", pay)
    known = ledger.get("order")
    assert known is not None
    assert (calls, known.state, known.missing) == (["paid"], "done", caught.value.reason)


@each
def test_a_job_whose_result_cannot_be_kept_is_not_run_again(
    client: ControlPlaneClient, clock: FakeClock, result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def pay(order: int) -> Any:
        calls.append(order)
        return result

    worker = Worker(pay, "jobs", client=client, idempotent=True, results=True)
    job = worker.put(1, id="one")
    with caplog.at_level(logging.WARNING, "holdfast.worker"):
        worker.run(until_empty=True)
    assert "job one of queue 'jobs' is done, but its result cannot be kept: " in caplog.text
    clock.advance(1000.0)
    worker.run(until_empty=True)
    assert (calls, (Queue[int]("jobs", client=client).stats()).total) == ([1], 0)
    with pytest.raises(ResultNotKept, match="job one of queue 'jobs' was done, but its result could not be kept: "):
        job.result()


@pytest.mark.parametrize("option", ["idempotent", "results"])
def test_a_worker_that_keeps_results_for_one_reason_repeats_nothing_either(
    client: ControlPlaneClient, clock: FakeClock, option: str
) -> None:
    calls: list[int] = []

    def pay(order: int) -> object:
        calls.append(order)
        return object()

    options: Any = {option: True}
    worker = Worker(pay, "jobs", client=client, **options)
    worker.put(1)
    for _ in range(2):
        worker.run(until_empty=True)
        clock.advance(1000.0)
    assert (calls, (Queue[int]("jobs", client=client).stats()).total) == ([1], 0)


def test_a_repetition_of_a_job_without_a_result_says_why_there_is_none(client: ControlPlaneClient) -> None:
    calls: list[int] = []

    def pay(order: int) -> object:
        calls.append(order)
        return object()

    worker = Worker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda _: "same", results=True)
    worker.put(1)
    worker.run(until_empty=True)
    again = worker.put(1)
    worker.run(until_empty=True)
    assert calls == [1]
    with pytest.raises(ResultNotKept, match="TypeError"):
        again.result()


def test_a_result_that_only_the_store_refuses_is_missing_and_the_job_is_done(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []

    def pay(order: int) -> str:
        calls.append(order)
        return "too much for this store"

    def execute(command: Any) -> Any:
        writes = [one for one in command.commands if isinstance(one, Write)] if isinstance(command, Together) else []
        if any(change.value and b"too much" in bytes(change.value) for write in writes for change in write.changes):
            raise ValueError("value is 27 bytes encoded, more than the limit of 20")
        return client.store.execute(command)

    worker = Worker(pay, "jobs", client=client, results=True, idempotent=True)
    job = worker.put(1)
    for _ in range(2):
        shift = worker._begin(until_empty=True)
        shift._queues[0]._store = Detour(client.store, execute)
        shift.run()
        clock.advance(1000.0)
    assert calls == [1]
    with pytest.raises(ResultNotKept, match="the limit of 20"):
        job.result()


def test_an_idempotent_job_whose_followers_are_refused_is_unknown_and_not_run_again(client: ControlPlaneClient, clock: FakeClock) -> None:
    calls: list[int] = []
    (Queue.create("next", maxsize=1, client=client)).put("first")

    def pay(order: int, job: JobContext) -> None:
        calls.append(order)
        job.put("next", order)

    worker = Worker(pay, "jobs", client=client, idempotent=True)
    worker.put(1, id="one")
    for _ in range(3):
        worker.run(until_empty=True)
        clock.advance(1000.0)
    (letter,) = Queue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("ExecutionUnknown")
    assert (calls, (Once("jobs-once", client=client).get("one")).state) == ([1], "unknown")  # type: ignore[union-attr]


def test_an_error_whose_text_no_store_can_keep_ends_its_job_all_the_same(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        raise Bury("bad \ud800 text")

    worker = Worker(handle, "jobs", client=client, results=True)
    worker.put(1)
    worker.run(until_empty=True)
    (letter,) = Queue[int]("jobs", client=client).dead_letters()
    assert letter.last_error == "bad \ufffd text"
