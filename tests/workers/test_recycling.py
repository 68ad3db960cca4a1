"""Child processes are replaced after so many jobs or with so much memory; no job fails of it."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Worker
from tests.workers import leaking


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://") as made:
        yield made


def run(client: ControlPlaneClient, function: Any, values: list[int], **options: Any) -> list[Any]:
    worker: Worker[int, Any, Any] = Worker(function, "work", client=client, execution="processes", results=True, max_attempts=1, **options)
    jobs = worker.put_many(values)
    worker.run(until_empty=True, signals=False)
    assert (worker.health.done, worker.health.failed) == (len(values), 0)
    return [job.result(timeout_s=0) for job in jobs]


def test_a_child_runs_so_many_jobs_and_is_replaced(client: ControlPlaneClient) -> None:
    pids = Counter(run(client, leaking.where, [0] * 9, max_jobs_per_child=3))
    assert sorted(pids.values()) == [3, 3, 3]


def test_only_the_child_that_is_at_its_end_is_replaced(client: ControlPlaneClient) -> None:
    pids = Counter(run(client, leaking.where, [0] * 10, max_jobs_per_child=4, concurrency=2))
    assert max(pids.values()) == 4
    assert len(pids) in (3, 4)


def test_a_child_with_too_much_memory_is_replaced(client: ControlPlaneClient) -> None:
    ((_, fresh_mb),) = run(client, leaking.leak, [0])
    seen = run(client, leaking.leak, [10] * 20, max_rss_mb=int(fresh_mb) + 45)
    assert max(mb for _, mb in seen) <= fresh_mb + 45 + 15
    assert len({pid for pid, _ in seen}) >= 3


def test_control_without_a_limit_memory_grows(client: ControlPlaneClient) -> None:
    seen = run(client, leaking.leak, [10] * 20)
    assert max(mb for _, mb in seen) - min(mb for _, mb in seen) >= 150
    assert len({pid for pid, _ in seen}) == 1


def test_a_worker_without_processes_has_nothing_to_replace(client: ControlPlaneClient) -> None:
    for option in ("max_jobs_per_child", "max_rss_mb"):
        options: Any = {option: 10}
        with pytest.raises(ValueError, match="need a function with execution='processes'"):
            Worker(leaking.where, "work", client=client, **options)


@pytest.mark.verify
def test_leaking_children_cost_little_and_stay_within_their_memory(client: ControlPlaneClient) -> None:
    """Children leak 1 MiB a job: their memory is bounded, no job fails, and the throughput is at least 0.95 of not replacing them."""
    ((_, fresh_mb),) = run(client, leaking.leak, [0])
    ratios = []
    for _ in range(3):
        took, seen = list[float](), list[Any]()
        for options in ({}, {"max_rss_mb": int(fresh_mb) + 300}):
            began = time.monotonic()
            seen = run(client, leaking.leak_slowly, [1] * 1500, **options)
            took.append(time.monotonic() - began)
        assert max(mb for _, mb in seen) <= fresh_mb + 300 + 2
        assert len({pid for pid, _ in seen}) >= 4
        ratios.append(took[0] / took[1])
    assert sorted(ratios)[1] >= 0.95, ratios
