# Generated from tests/_async/workers/test_shared_breaker.py by tools/unasync.py; do not edit.
"""A breaker that the workers of a queue share: it opens for all of them, and one of them lets one job try."""

from typing import Any

import pytest

from holdfast import Backoff, Breaker
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import Gate, Runner

NEVER = Backoff(100_000.0, jitter=0.0, most_s=100_000.0)
"""A job that failed is not tried again within the test."""

BREAKER = Breaker(2, cooldown_s=60.0, shared=True)


class Service:
    """What the handlers call: broken, or slow, or well."""

    def __init__(self) -> None:
        self.is_broken = True
        self.gate: Gate | None = None
        self.calls: list[int] = []

    def call(self, value: int) -> None:
        self.calls.append(value)
        if self.gate is not None:
            self.gate.wait()
        if self.is_broken:
            raise ValueError("broken")


@pytest.fixture
def service() -> Service:
    return Service()


def make(client: ControlPlaneClient, service: Service, name: str, breaker: Breaker = BREAKER) -> "Worker[int, None, Any]":
    return Worker(service.call, "jobs", client=client, name=name, breaker=breaker, backoff=NEVER, lease_s=9999.0, schedules=False)


def are_open(runner: Runner, queue: Queue[int], *workers: "Worker[int, None, Any]") -> None:
    """Wait until each has seen that the breaker is open, and nothing is claimed any more."""
    runner.until(lambda: all(worker.health.state == "open" for worker in workers))
    while (queue.stats()).leased:
        runner.until(lambda: all(worker.health.running == 0 for worker in workers))


def test_failures_of_one_worker_open_the_breaker_of_the_other(client: ControlPlaneClient, service: Service) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = Queue[int]("jobs", client=client)
    with Runner() as runner:
        with one:
            queue.put_many([1, 2])
            are_open(runner, queue, one)
        with other:
            queue.put_many([3, 4])
            are_open(runner, queue, other)
        assert sorted(service.calls) == [1, 2], "the other worker began nothing"


def test_failures_of_several_workers_count_together(client: ControlPlaneClient, service: Service) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = Queue[int]("jobs", client=client)
    with Runner() as runner:
        with one:
            queue.put(1)
            runner.until(lambda: one.health.failed == 1)
            assert one.health.state == "working"
        with other:
            queue.put_many([2, 3])
            are_open(runner, queue, other)
    assert service.calls == [1, 2]


def test_control_without_shared_each_worker_counts_its_own_failures(client: ControlPlaneClient, service: Service) -> None:
    """The control of the test above: what it shows is the store's doing."""
    own = Breaker(2, cooldown_s=60.0)
    one, other = make(client, service, "one", own), make(client, service, "other", own)
    queue = Queue[int]("jobs", client=client)
    with Runner() as runner:
        with one:
            queue.put(1)
            runner.until(lambda: one.health.failed == 1)
        with other:
            queue.put_many([2, 3])
            are_open(runner, queue, other)
    assert service.calls == [1, 2, 3]


def test_a_job_that_is_done_ends_the_row_of_failures(client: ControlPlaneClient, service: Service) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = Queue[int]("jobs", client=client)
    with Runner() as runner:
        with one:
            queue.put(1)
            runner.until(lambda: one.health.failed == 1)
            service.is_broken = False
            queue.put(2)
            runner.until(lambda: one.health.done == 1)
        service.is_broken = True
        with other:
            queue.put(3)
            runner.until(lambda: other.health.failed == 1)
            service.is_broken = False
            queue.put(4)
            runner.until(lambda: other.health.done == 1)
    assert service.calls == [1, 2, 3, 4]
    assert Dict[int]("jobs-breaker", client=client).length() == 0


def test_after_the_cooldown_one_worker_of_all_lets_one_job_try(client: ControlPlaneClient, service: Service, clock: FakeClock) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = Queue[int]("jobs", client=client)
    with Runner() as runner, one, other:
        queue.put_many(range(10))
        are_open(runner, queue, one, other)
        before = len(service.calls)
        service.gate = Gate()
        clock.advance(61.0)
        runner.until(lambda: len(service.calls) == before + 1)
        tries, waits = (one, other) if one.health.running else (other, one)
        assert waits.health.state == "open"
        clock.advance(61.0)
        assert (queue.stats()).leased == 1
        assert len(service.calls) == before + 1
        service.gate.open()
        runner.until(lambda: tries.health.state == "open")
        service.gate, service.is_broken = None, False
        assert len(service.calls) == before + 1, "the trial failed, so all wait again"
        clock.advance(61.0)
        runner.until(lambda: one.health.done + other.health.done == 10 - before - 1)
        runner.until(lambda: {one.health.state, other.health.state} == {"working"})


def test_a_worker_that_stops_while_it_may_try_leaves_that_to_another(
    client: ControlPlaneClient, service: Service, clock: FakeClock
) -> None:
    one, other = make(client, service, "one"), make(client, service, "other")
    queue = Queue[int]("jobs", client=client)
    with Runner() as runner:
        with one:
            queue.put_many([1, 2])
            are_open(runner, queue, one)
            clock.advance(61.0)
            # The queue is empty: it may try, and waits for something to try.
            runner.until(lambda: one.health.state == "working")
        service.is_broken = False
        with other:
            queue.put(3)
            runner.until(lambda: other.health.done == 1)
    assert service.calls == [1, 2, 3]
