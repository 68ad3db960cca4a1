"""`queue ls`, `top` and `doctor` count all queues by one command, however many there are."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Queue, WorkerHealth, WorkerInfo
from holdfast.cli import queue_counts as counting
from holdfast.cli.doctor.findings import look, queues
from holdfast.cli.top.picture import take_picture
from holdfast.commands import Count, Counts
from holdfast.stores.memory import MemoryStore


class Recorder(MemoryStore):
    """A store that keeps the kinds of the commands it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[type] = []

    def execute(self, command: Any) -> Any:
        self.kinds.append(type(command))
        return super().execute(command)


@pytest.fixture
def client() -> ControlPlaneClient:
    made = ControlPlaneClient.on(Recorder())
    for name in ("a", "b", "c"):
        Queue.create(name, client=made).put(1)
    return made


def counted(client: ControlPlaneClient) -> tuple[int, int]:
    assert isinstance(client.store, Recorder)
    return client.store.kinds.count(Counts), client.store.kinds.count(Count)


def test_a_picture_of_all_queues_takes_one_command(client: ControlPlaneClient) -> None:
    assert [(row.name, row.ready) for row in take_picture(client).queues] == [("a", 1), ("b", 1), ("c", 1)]
    assert counted(client) == (1, 0)


def test_doctor_counts_by_one_command(client: ControlPlaneClient) -> None:
    assert [one.about for one in look(client) if one.level == "problem"] == ["queue a", "queue b", "queue c"]
    assert counted(client) == (1, 0)


def test_what_is_more_than_a_page_is_counted_page_by_page(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PAGE", 2)
    assert [one.name for one in counting.queue_counts(client.store)] == ["a", "b", "c"]
    assert [one.name for one in counting.queue_counts(client.store, "b")] == ["b"]
    assert counted(client) == (3, 0)


def test_a_queue_that_is_one_of_several_of_a_worker_is_served(client: ControlPlaneClient) -> None:
    now = datetime.now(UTC)
    living = [WorkerInfo("host-1", "1", "a", "host", 1, "threads", 1, now, now, WorkerHealth("working", 0, 0, 0, 0), queues=("a", "b"))]
    assert [queue.served_by for queue in queues(client, living)] == [1, 1, 0]
