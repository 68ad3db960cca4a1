"""A worker on the stores of other machines: effects once, and results."""

from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue, Worker
from tests.stores_by_name import url_of


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_worker_does_a_key_once_and_repeats_get_the_stored_result(kind: str, tmp_path: Path) -> None:
    calls: list[int] = []

    def pay(order: dict[str, int]) -> int:
        calls.append(order["id"])
        return 100 + order["id"]

    with ControlPlaneClient(url_of(kind, tmp_path)) as client:
        worker = Worker(pay, "jobs", client=client, idempotent=True, idempotency_key=lambda order: order["id"], results=True)
        jobs = worker.put_many([{"id": 1}, {"id": 2}])
        worker.run(until_empty=True)
        jobs += worker.put_many([{"id": 1}, {"id": 2}])
        worker.run(until_empty=True)
        assert sorted(calls) == [1, 2]
        assert [job.result() for job in jobs] == [101, 102, 101, 102]
        assert Queue[int]("jobs", client=client).stats().total == 0
