# Generated from tests/_async/workers/test_control.py by tools/unasync.py; do not edit.
"""Workers are paused, slowed down, stopped; jobs are cancelled, reported on, limited in time."""

from typing import Any

import pytest

from holdfast import Backoff, Breaker, JobContext
from holdfast._sync.flows.working.registering import Registration
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import STOPPED, Worker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from holdfast.workers.orders import make_orders
from tests.runners import Gate, Runner


def test_no_more_jobs_run_at_once_than_it_may(client: ControlPlaneClient) -> None:
    running: set[int] = set()
    most: list[int] = []
    gate = Gate()

    def handle(value: int) -> None:
        running.add(value)
        most.append(len(running))
        if len(most) >= 3:
            gate.open()
        gate.wait()
        running.discard(value)

    worker = Worker(handle, "jobs", client=client, concurrency=3)
    worker.put_many(range(12))
    worker.run(until_empty=True)
    assert max(most) == 3
    assert worker.health.done == 12


def test_a_put_wakes_a_worker_that_waits(client: ControlPlaneClient) -> None:
    gate = Gate()

    def handle(value: int) -> None:
        gate.open()

    worker = Worker(handle, "jobs", client=client, poll_interval_s=3600.0)
    with worker:
        worker.put(1)
        gate.wait()
    assert worker.health.done == 1


def test_a_worker_runs_so_many_jobs_and_ends(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        pass

    worker = Worker(handle, "jobs", client=client, concurrency=8)
    worker.put_many(range(5))
    worker.run(max_jobs=3)
    assert worker.health.done == 3
    assert Queue[int]("jobs", client=client).length() == 2


def test_jobs_begin_so_far_apart_as_it_was_told(client: ControlPlaneClient, clock: FakeClock) -> None:
    began: list[int] = []
    gates = [Gate(), Gate()]

    def handle(value: int) -> None:
        began.append(value)
        gates[value].open()

    worker = Worker(handle, "jobs", client=client, concurrency=5, min_interval_s=10.0)
    worker.put_many([0, 1])
    with worker, Runner() as runner:
        gates[0].wait()
        runner.until(lambda: worker.health.done == 1)
        clock.advance(9.0)
        stats = Queue[int]("jobs", client=client).stats()
        assert (stats.ready, stats.leased) == (1, 0), "nothing is held while nothing is done"
        clock.advance(1.5)
        gates[1].wait()
    assert began == [0, 1]


def test_a_breaker_pauses_after_failures_in_a_row_and_lets_one_try(client: ControlPlaneClient, clock: FakeClock) -> None:
    seen: list[int] = []
    is_broken = True

    def handle(value: int) -> None:
        seen.append(value)
        if is_broken:
            raise ValueError("broken")

    backoff = Backoff(1000.0, jitter=0.0, most_s=1000.0)
    worker = Worker(handle, "jobs", client=client, breaker=Breaker(2, cooldown_s=60.0), lease_s=9999.0, backoff=backoff)
    worker.put_many(range(5))
    with worker, Runner() as runner:
        runner.until(lambda: worker.health.state == "open")
        assert seen == [0, 1]
        clock.advance(61.0)
        runner.until(lambda: worker.health.failed == 3)
        runner.until(lambda: worker.health.state == "open")
        assert seen == [0, 1, 2]
        is_broken = False
        clock.advance(61.0)
        runner.until(lambda: worker.health.done == 2)
    assert seen == [0, 1, 2, 3, 4]


def test_a_breaker_lets_one_job_try_however_many_may_run(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate = Gate()
    is_broken = True

    def handle(value: int) -> None:
        if is_broken:
            raise ValueError("broken")
        gate.wait()

    backoff = Backoff(1000.0, jitter=0.0, most_s=1000.0)
    worker = Worker(handle, "jobs", client=client, concurrency=3, breaker=Breaker(2, cooldown_s=60.0), lease_s=9999.0, backoff=backoff)
    worker.put_many(range(8))
    with worker, Runner() as runner:
        shift = worker._shift
        assert shift is not None
        runner.until(lambda: worker.health.state == "open" and not shift._crews[0].running)
        is_broken = False
        clock.advance(61.0)
        runner.until(lambda: worker.health.running > 0 and shift._crews[0].bell._mark is not None)
        assert worker.health.running == 1
        gate.open()
        runner.until(lambda: worker.health.done + worker.health.failed == 8)


def test_a_paused_worker_claims_nothing_until_it_is_resumed(client: ControlPlaneClient) -> None:
    gate = Gate()

    def handle(value: int) -> None:
        gate.open()

    worker = Worker(handle, "jobs", client=client)
    queue = Queue[int]("jobs", client=client)
    with worker, Runner() as runner:
        shift = worker._shift
        assert shift is not None
        worker.pause()
        assert worker.health.state == "paused"
        # No claim is under way any more: it waits, in no line.
        runner.until(lambda: getattr(shift._crews[0].bell._mark, "topic", "").startswith("worker:"))
        worker.put(1)
        assert (queue.stats()).ready == 1
        worker.resume()
        gate.wait()
    assert (queue.stats()).total == 0


def test_stopping_lets_jobs_finish_and_claims_no_more(client: ControlPlaneClient) -> None:
    began, gate = Gate(), Gate()

    def handle(value: int) -> None:
        began.open()
        gate.wait()

    worker = Worker(handle, "jobs", client=client)
    worker.put_many([1, 2])
    with Runner() as runner:
        worker.start()
        began.wait()
        stopping = runner.start(worker.stop)
        runner.until(lambda: worker.health.state == "stopping")
        gate.open()
        stopping.result()
    stats = Queue[int]("jobs", client=client).stats()
    assert (worker.health.done, stats.ready, stats.leased) == (1, 1, 0)


def test_what_does_not_finish_in_time_is_ready_again_and_burns_nothing(client: ControlPlaneClient) -> None:
    began = Gate()

    def handle(value: int, job: JobContext) -> None:
        began.open()
        with Runner() as runner:
            runner.until(lambda: job.should_stop)
        job.check()

    worker = Worker(handle, "jobs", client=client, max_attempts=1)
    worker.put(1)
    worker.start()
    began.wait()
    worker.stop(grace_s=0.0)
    (message,) = Queue[int]("jobs", client=client).browse()
    assert (message.state, message.attempts, message.failures) == ("ready", 1, 0)


def test_reports_are_seen_while_the_job_runs_and_gone_with_it(client: ControlPlaneClient) -> None:
    gate = Gate()

    def handle(value: int, job: JobContext) -> None:
        job.report({"part": 1})
        job.report({"part": 2})
        gate.wait()

    worker = Worker(handle, "jobs", client=client)
    job = worker.put(1)
    with worker:
        for event in Dict[Any]("jobs-progress", client=client).watch(timeout_s=60.0):
            if event.data["value"] == {"part": 2}:
                break
        assert job.progress() == {"part": 2}
        gate.open()
    assert job.progress() is None


def test_the_registry_shows_who_lives_and_tells_incarnations_apart(client: ControlPlaneClient, clock: FakeClock) -> None:
    def handle(value: int) -> None:
        pass

    first = Worker(handle, "jobs", client=client, name="same")
    second = Worker(handle, "jobs", client=client, name="same")
    with Runner() as runner, first:
        second.start()
        runner.until(lambda: first._shift._state.beat_at > 0 and second._shift._state.beat_at > 0)  # type: ignore[union-attr]
        found = Worker.list(client=client)
        assert [(one.name, one.queue, one.health.state) for one in found] == [("same", "jobs", "working")] * 2
        assert len({one.incarnation for one in found}) == 2
        second.stop()
        assert len(Worker.list(client=client)) == 1
    assert Worker.list(client=client) == []


def test_a_lost_claim_is_not_acknowledged(client: ControlPlaneClient, caplog: pytest.LogCaptureFixture) -> None:
    began, gate = Gate(), Gate()

    def handle(value: int) -> None:
        began.open()
        gate.wait()

    worker = Worker(handle, "jobs", client=client)
    queue = Queue[int]("jobs", client=client)
    worker.put(1, id="one")
    with worker, Runner() as runner:
        began.wait()
        queue.clear()
        worker.put(2, id="one")
        gate.open()
        runner.until(lambda: worker.health.done == 1)
    assert "will be run again" in caplog.text


def test_a_worker_that_is_silent_for_three_heartbeats_is_gone_from_the_registry(client: ControlPlaneClient, clock: FakeClock) -> None:
    def handle(value: int) -> None:
        pass

    worker = Worker(handle, "jobs", client=client, name="lives", heartbeat_s=10.0)
    # What a worker leaves that was killed.
    Registration(client.store, make_orders(handle, "jobs", name="died", heartbeat_s=10.0), "x").beat(STOPPED)
    with worker, Runner() as runner:
        shift = worker._shift
        assert shift is not None
        for living in (["died", "lives"], ["died", "lives"], ["died", "lives"], ["lives"], ["lives"]):
            runner.until(lambda: shift._state.beat_at > client.keepalive.now())
            assert [one.name for one in Worker.list(client=client)] == living
            clock.advance(10.0)


def test_jobs_that_end_together_are_all_settled_without_another_call(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.workers.running.running_jobs.SETTLE_MOST", 3)
    gate = Gate()

    def handle(value: int) -> None:
        gate.wait()

    worker = Worker(handle, "jobs", client=client, concurrency=8, poll_interval_s=3600.0, heartbeat_s=None)
    worker.put_many(range(8))
    with worker, Runner() as runner:
        runner.until(lambda: worker.health.running == 8)
        gate.open()
        runner.until(lambda: worker.health.done == 8)
