"""What a job leaves behind in its worker, and how the meters see it."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from holdfast import JobContext, Snooze, Tasks, Worker
from holdfast.client import ControlPlaneClient
from holdfast.stores.memory import MemoryStore
from holdfast.telemetry.meters import IN_FLIGHT


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(MemoryStore()) as made:
        yield made


def test_a_settled_job_leaves_nothing_to_the_garbage_collector(client: ControlPlaneClient) -> None:
    seen: list[weakref.ref[JobContext]] = []

    def work(value: int, job: JobContext) -> None:
        job.put("next", value)
        seen.append(weakref.ref(job))

    worker = Worker(work, "jobs", client=client, heartbeat_s=None)
    worker.put_many(range(10))
    gc.collect()
    gc.disable()
    try:
        worker.run(until_empty=True, signals=False)
        assert [job() for job in seen] == [None] * 10
    finally:
        gc.enable()


def test_a_batch_is_one_running_function(client: ControlPlaneClient) -> None:
    app, seen = Tasks(client=client), list[str]()

    @app.batch(size=3, queue="gathered")
    def gather(values: list[int]) -> None:
        seen.extend(line for line in IN_FLIGHT.lines() if '"gathered"' in line)

    gather.put_many([gather.args(number) for number in range(3)])
    app.run(until_empty=True, signals=False)
    assert seen == ['holdfast_jobs_in_flight{queue="gathered"} 1.0']
    assert 'holdfast_jobs_in_flight{queue="gathered"} 0.0' in [*IN_FLIGHT.lines()]


def test_the_last_word_of_a_job_that_goes_on_later_is_kept(client: ControlPlaneClient) -> None:
    app = Tasks("naps", client=client)

    @app.task(name="nap")
    def nap(job: JobContext) -> None:
        job.progress(0.5)
        raise Snooze(3_600.0)

    jobs = [nap.put() for _ in range(20)]
    app.run(until_empty=True, signals=False, schedules=False)
    assert [job.status().progress for job in jobs] == [jobs[0].status().progress] * 20
    assert jobs[0].status().progress is not None
