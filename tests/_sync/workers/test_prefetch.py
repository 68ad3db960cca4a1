# Generated from tests/_async/workers/test_prefetch.py by tools/unasync.py; do not edit.
"""While jobs are short a worker claims more than it can begin; nobody waits longer for that, and nothing dies of it."""

from typing import Any

import pytest

from holdfast import Bury, WorkerOptions
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together
from holdfast.testing.clock import FakeClock
from tests.runners import Gate, Runner
from tests.workers.detours import Detour


class Slow:
    """A handler that does nothing, but for one value, where it waits until it is let go on."""

    def __init__(self, slow: int) -> None:
        self.seen: list[int] = []
        self.began, self.gate = Gate(), Gate()
        self._slow = slow

    def __call__(self, value: int) -> None:
        self.seen.append(value)
        if value == self._slow:
            self.began.open()
            self.gate.wait()


# Not on memory, where a step takes no time in which others could gather.
@pytest.mark.parametrize("client", ["sqlite", "redis", "postgres"], indirect=True)
def test_short_jobs_are_settled_and_claimed_many_at_a_time(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        pass

    steps: list[Together] = []
    execute = client.store.execute

    def counted(command: Any) -> Any:
        if isinstance(command, Together):
            steps.append(command)
        return execute(command)

    worker = Worker(handle, "jobs", client=client)
    worker.put_many(range(500))
    shift = worker._begin(until_empty=True)
    shift._queues[0]._store = Detour(client.store, counted)
    shift.run()
    assert worker.health.done == 500
    assert len(steps) < 100


@pytest.mark.parametrize("prefetch", [None, 0, 7])
def test_no_more_jobs_run_at_once_than_it_may_however_many_are_held(client: ControlPlaneClient, prefetch: int | None) -> None:
    running: list[int] = []
    most: list[int] = []

    def handle(value: int) -> None:
        running.append(value)
        most.append(len(running))
        with Runner() as runner:
            turns = iter(range(3))
            runner.until(lambda: next(turns, None) is None)
        running.remove(value)

    worker = Worker(handle, "jobs", client=client, concurrency=2, prefetch=prefetch)
    worker.put_many(range(60))
    worker.run(until_empty=True)
    assert (max(most), worker.health.done) == (2, 60)


def test_what_waits_behind_a_long_job_is_given_back_and_burns_nothing(client: ControlPlaneClient, clock: FakeClock) -> None:
    handle = Slow(20)
    worker = Worker(handle, "jobs", client=client)
    queue = Queue[int]("jobs", client=client)
    worker.put_many(range(50))
    with worker, Runner() as runner:
        handle.began.wait()
        shift = worker._shift
        assert shift is not None
        # At rest: what a claim under way brings has its time from when it comes.
        runner.until(lambda: len(shift._crews[0].running) > worker.health.running == 1 and shift._crews[0].bell._mark is not None)
        clock.advance(0.2)
        runner.until(lambda: len(shift._crews[0].running) == 1 and not shift._queues[0]._unsettled)
        others = queue.claim_many(100, claimer="another")
        assert [claim.value for claim in others] == list(range(21, 50)), "in their places"
        assert {claim.failures for claim in others} == {0}
        handle.gate.open()
    assert handle.seen == list(range(21))


def test_stopping_gives_back_at_once_what_did_not_begin(client: ControlPlaneClient) -> None:
    handle = Slow(20)
    worker = Worker(handle, "jobs", client=client)
    queue = Queue[int]("jobs", client=client)
    worker.put_many(range(50))
    with Runner() as runner:
        worker.start()
        handle.began.wait()
        shift = worker._shift
        assert shift is not None
        runner.until(lambda: len(shift._crews[0].running) > 1)
        stopping = runner.start(worker.stop)
        runner.until(lambda: len(shift._crews[0].running) == 1)
        handle.gate.open()
        stopping.result()
    stats = queue.stats()
    assert (handle.seen, stats.ready, stats.leased) == (list(range(21)), 29, 0)


@pytest.mark.parametrize("why", ["it has one attempt left", "its worker died"])
def test_what_should_not_share_a_worker_runs_alone(client: ControlPlaneClient, clock: FakeClock, why: str) -> None:
    began, gate = Gate(), Gate()
    leased: list[int] = []
    queue = Queue[int]("jobs", client=client)

    def handle(value: int) -> None:
        if value >= 20:
            leased.append((queue.stats()).leased)
        if value == 30:
            began.open()
            gate.wait()

    worker = Worker(handle, "jobs", client=client)
    worker.put_many(range(20, 50), max_attempts=1 if why == "it has one attempt left" else 9)
    if why == "its worker died":
        assert len(queue.claim_many(30, claimer="the dead", lease_s=1.0)) == 30
        clock.advance(2.0)
    worker.put_many(range(20), priority=1)
    with worker, Runner() as runner:
        began.wait()
        assert (queue.stats()).leased == 1
        gate.open()
        runner.until(lambda: worker.health.done == 50)
    # Not even for a moment: what came with the first of them was given back before it began.
    assert max(leased) == 1


@pytest.mark.parametrize("options", [WorkerOptions(idempotent=True), WorkerOptions(max_attempts=1), WorkerOptions(prefetch=0)])
def test_nothing_is_claimed_ahead_where_that_could_do_harm(client: ControlPlaneClient, options: WorkerOptions) -> None:
    handle = Slow(20)
    worker = Worker(handle, "jobs", client=client, **options)
    worker.put_many(range(50))
    with worker:
        handle.began.wait()
        assert worker._shift is not None
        assert len(worker._shift._crews[0].running) == 1
        handle.gate.open()


def test_a_worker_that_must_know_what_it_began_refuses_to_prefetch(client: ControlPlaneClient) -> None:
    def handle(value: int) -> None:
        raise Bury

    with pytest.raises(ValueError, match="which of them it had begun"):
        Worker(handle, "jobs", client=client, idempotent=True, prefetch=3)
