# Generated from tests/_async/workers/test_time_limits.py by tools/unasync.py; do not edit.
"""How long jobs may run, and hold on to their messages."""

import asyncio
import logging
from typing import Any

import pytest

from holdfast import JobContext
from holdfast._sync.handles.once import Once
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together
from holdfast.testing.clock import FakeClock
from tests.runners import Gate, Runner
from tests.workers.detours import Detour


def test_a_soft_limit_tells_the_job_and_counts_as_a_failure(client: ControlPlaneClient, clock: FakeClock) -> None:
    began = Gate()

    def handle(value: int, job: JobContext) -> None:
        began.open()
        with Runner() as runner:
            runner.until(lambda: job.should_stop)
        job.check()

    worker = Worker(handle, "jobs", client=client, soft_limit_s=30.0, max_attempts=1)
    worker.put(1)
    with worker, Runner() as runner:
        began.wait()
        clock.advance(29.0)
        clock.advance(2.0)
        runner.until(lambda: worker.health.failed == 1)
    (letter,) = Queue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")


def test_a_handler_of_ten_leases_keeps_its_message(client: ControlPlaneClient, clock: FakeClock) -> None:
    began, gate = Gate(), Gate()

    def handle(value: int) -> None:
        began.open()
        gate.wait()

    worker = Worker(handle, "jobs", client=client, lease_s=30.0)
    queue = Queue[int]("jobs", client=client)
    worker.put(1)
    with worker, Runner() as runner:
        began.wait()
        (run,) = worker._shift._crews[0].running.values()  # type: ignore[union-attr]
        for _ in range(20):
            renewed_until = run.hold.trusted_until
            clock.advance(15.0)
            runner.until(lambda until=renewed_until: run.hold.trusted_until > until)  # type: ignore[misc]
            assert queue.claim(claimer="another") is None
        gate.open()
    assert (worker.health.done, (queue.stats()).total) == (1, 0)


def test_a_handler_that_hangs_loses_its_message_and_its_stack_is_logged(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    began, gate = Gate(), Gate()

    def hang_here(value: int) -> None:
        began.open()
        gate.wait()

    worker = Worker(hang_here, "jobs", client=client, lease_s=30.0, max_hold_s=60.0)
    queue = Queue[int]("jobs", client=client)
    worker.put(1)
    with Runner() as runner:
        worker.start()
        began.wait()
        worker.pause()
        (run,) = worker._shift._crews[0].running.values()  # type: ignore[union-attr]
        for seconds in (45.0, 60.0, 75.0):
            clock.advance(15.0)
            runner.until(lambda ends=run.hold.since + seconds: run.hold.ends_at == ends)  # type: ignore[misc]
        with caplog.at_level(logging.ERROR, "holdfast"):
            clock.advance(15.0)
            runner.until(lambda: not run.hold.auto_renew)
            clock.advance(15.0)
        runner.until(lambda: worker.health.running == 0)
        clock.advance(30.0)
        claim = queue.claim(claimer="another")
        assert claim is not None
        assert claim.failures == 1
        gate.open()
        worker.stop()
    assert "max_hold_s" in caplog.text
    assert "hang_here" in caplog.text
    assert worker.health.done == 0


def test_a_hard_limit_fails_a_job_that_hears_nobody_and_another_takes_its_place(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    began, gate = Gate(), Gate()

    def hang_here(value: int) -> None:
        if value:
            return
        began.open()
        try:
            gate.wait()
        except asyncio.CancelledError:
            gate.wait()

    worker = Worker(hang_here, "jobs", client=client, hard_limit_s=30.0, max_attempts=1)
    worker.put_many([0, 1, 2])
    with worker, Runner() as runner:
        began.wait()
        clock.advance(29.0)
        clock.advance(2.0)
        runner.until(lambda: worker.health.done == 2)
        assert (worker.health.failed, worker.health.abandoned) == (1, 1)
        gate.open()
    (letter,) = Queue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")
    assert "hang_here" in caplog.text
    assert (worker.health.done, worker.health.failed) == (2, 1), "what comes after the limit does not count"


def test_what_ended_in_time_is_not_late_because_its_store_is_slow(client: ControlPlaneClient, clock: FakeClock) -> None:
    gates, stuck, go_on = [Gate(), Gate()], Gate(), Gate()
    execute = client.store.execute

    def handle(value: int) -> None:
        gates[value].wait()

    def slow(command: Any) -> Any:
        if isinstance(command, Together):
            stuck.open()
            go_on.wait()
        return execute(command)

    worker = Worker(handle, "jobs", client=client, concurrency=2, idempotent=True, hard_limit_s=30.0)
    jobs = worker.put_many([0, 1])
    shift = worker._begin(until_empty=True)
    shift._queues[0]._store = Detour(client.store, slow)
    with Runner() as runner:
        running = runner.start(shift.run)
        runner.until(lambda: worker.health.running == 2)
        gates[0].open()
        stuck.wait()
        gates[1].open()
        runner.until(lambda: worker.health.running == 0)
        clock.advance(31.0)
        runner.until(lambda: not any(shift._pools.timekeeper._lines.values()))
        go_on.open()
        running.result()
    assert (worker.health.done, worker.health.failed, worker.health.abandoned) == (2, 0, 0)
    ledger = Once("jobs-once", client=client)
    assert [(ledger.get(job.id)).state for job in jobs] == ["done", "done"]  # type: ignore[union-attr]


def test_what_ended_is_forgotten_whatever_still_runs(client: ControlPlaneClient) -> None:
    began, gate = Gate(), Gate()

    def handle(value: int) -> None:
        if value == 0:
            began.open()
            gate.wait()

    worker = Worker(handle, "jobs", client=client, concurrency=2, soft_limit_s=30.0, hard_limit_s=60.0)
    worker.put_many(range(50))
    with worker, Runner() as runner:
        began.wait()
        runner.until(lambda: worker.health.done == 49)
        lines = worker._shift._pools.timekeeper._lines  # type: ignore[union-attr]
        assert [len(line) for line in lines.values()] == [1, 1]
        gate.open()
