# Generated from tests/_async/workers/test_cancelling.py by tools/unasync.py; do not edit.
"""Jobs are cancelled by their id: those that wait are removed, those that run are told."""

import asyncio
from typing import Any

import pytest

from holdfast import JobCancelled, JobContext
from holdfast._sync.handles.job import Job
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import Gate, Runner


def test_a_running_job_is_cancelled_by_its_id_from_anywhere(client: ControlPlaneClient) -> None:
    began, gate = Gate(), Gate()

    def handle(value: int, job: JobContext) -> None:
        began.open()
        with Runner() as runner:
            runner.until(lambda: job.should_stop)
        job.check()

    worker = Worker(handle, "jobs", client=client, results=True)
    worker.put(1, id="one")
    with worker:
        began.wait()
        job = Job("jobs", "one", client=client)
        assert job.cancel() == "requested"
        with pytest.raises(JobCancelled):
            job.result(timeout_s=60.0)
    gate.open()
    assert (Queue[int]("jobs", client=client).stats()).total == 0
    assert Dict[Any]("holdfast-cancels", client=client).length() == 0
    assert job.cancel() == "absent"


def test_a_job_that_is_claimed_after_its_cancellation_does_not_run(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = Worker(handle, "jobs", client=client, results=True)
    queue, job = Queue[int]("jobs", client=client), worker.put(1)
    claim = queue.claim(claimer="another")
    assert claim is not None
    assert job.cancel() == "requested"
    with worker:
        shift = worker._shift
        assert shift is not None
        with Runner() as runner:
            runner.until(lambda: bool(shift._crews[0]._cancelled))
        claim.release()
        with pytest.raises(JobCancelled):
            job.result(timeout_s=60.0)
    assert (queue.stats()).total == 0


def test_a_job_that_waits_is_cancelled_by_removing_it(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = Worker(handle, "jobs", client=client)
    job = worker.put(1)
    assert job.cancel() == "cancelled"
    with pytest.raises(JobCancelled):
        job.result()
    worker.run(until_empty=True)
    assert worker.health.failed == 0


def test_a_request_ends_with_its_job_however_that_ends(client: ControlPlaneClient, clock: FakeClock) -> None:
    began, gate = Gate(), Gate()

    def finish(value: int, job: JobContext) -> None:
        began.open()
        try:
            gate.wait()
        except asyncio.CancelledError:
            return

    worker = Worker(finish, "jobs", client=client)
    worker.put(1, id="one")
    with worker, Runner() as runner:
        began.wait()
        (run,) = worker._shift._crews[0].running.values()  # type: ignore[union-attr]
        assert Job("jobs", "one", client=client).cancel() == "requested"
        runner.until(lambda: run.job.should_stop)
        gate.open()
        runner.until(lambda: worker.health.done == 1)
    assert Dict[Any]("holdfast-cancels", client=client).length() == 0


def test_a_request_for_a_job_is_not_one_for_the_next_of_its_id(client: ControlPlaneClient, clock: FakeClock) -> None:
    seen: list[int] = []

    def handle(value: int) -> None:
        seen.append(value)

    worker, queue = Worker(handle, "jobs", client=client), Queue[int]("jobs", client=client)
    worker.put(1, id="same")
    claim = queue.claim(claimer="no worker")
    assert claim is not None
    assert Job("jobs", "same", client=client).cancel() == "requested"
    queue.ack(claim)
    clock.advance(1.0)
    worker.put(2, id="same")
    with worker, Runner() as runner:
        runner.until(lambda: worker.health.done == 1)
    assert seen == [2]
