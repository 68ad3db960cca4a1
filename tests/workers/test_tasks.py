"""A task that only waits is cancelled by whatever tells it to stop."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, JobCancelled, Queue, Worker
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.runners import Runner


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as made:
        yield made


class Waiting:
    """A handler that waits for nothing but its cancellation."""

    def __init__(self) -> None:
        self.began, self.was_cancelled = threading.Event(), threading.Event()

    async def __call__(self, value: Any) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise


def test_a_soft_limit_cancels_it(client: ControlPlaneClient, clock: FakeClock) -> None:
    handle = Waiting()
    worker = Worker(handle, "jobs", client=client, soft_limit_s=30.0, max_attempts=1)
    worker.put(1)
    with worker, Runner() as runner:
        assert handle.began.wait(60)
        clock.advance(31.0)
        assert handle.was_cancelled.wait(60)
        runner.until(lambda: worker.health.failed == 1)
    (letter,) = Queue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")


def test_a_request_cancels_it(client: ControlPlaneClient) -> None:
    handle = Waiting()
    worker = Worker(handle, "jobs", client=client, results=True)
    job = worker.put(1)
    with worker:
        assert handle.began.wait(60)
        assert job.cancel() == "requested"
        assert handle.was_cancelled.wait(60)
        with pytest.raises(JobCancelled):
            job.result(timeout_s=60.0)


def test_a_loss_cancels_it(client: ControlPlaneClient, clock: FakeClock) -> None:
    handle = Waiting()
    worker = Worker(handle, "jobs", client=client, lease_s=30.0)
    worker.put(1)
    with worker, Runner() as runner:
        assert handle.began.wait(60)
        Queue[int]("jobs", client=client).clear()
        clock.advance(11.0)
        assert handle.was_cancelled.wait(60)
        runner.until(lambda: worker.health.running == 0)
    assert (worker.health.done, worker.health.failed) == (0, 0)


def test_the_end_of_its_worker_cancels_it_and_burns_nothing(client: ControlPlaneClient) -> None:
    handle = Waiting()
    worker = Worker(handle, "jobs", client=client, max_attempts=1)
    worker.put(1)
    worker.start()
    assert handle.began.wait(60)
    worker.stop(grace_s=0.0)
    assert handle.was_cancelled.is_set()
    (message,) = Queue[int]("jobs", client=client).browse()
    assert (message.state, message.failures) == ("ready", 0)
