"""What a handle asks for page by page goes on by itself, and reads no more than it needs."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.commands import Browse
from holdfast.stores.memory import MemoryStore


class Noting(MemoryStore):
    """Notes how much each page that is asked for may bring."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def execute(self, command: Any) -> Any:
        if isinstance(command, Browse):
            self.asked.append(command.limit)
        return super().execute(command)


@pytest.fixture
def store() -> Iterator[Noting]:
    store = Noting()
    yield store
    store.close()


@pytest.fixture
def jobs(store: Noting, monkeypatch: pytest.MonkeyPatch) -> Queue[Any]:
    monkeypatch.setattr("holdfast.commands.filtered.LOOKED_AT", 3)
    return Queue.from_name("jobs", client=ControlPlaneClient.on(store))


def peeked(jobs: Queue[Any]) -> Any:
    message = jobs.peek()
    return message and message.value


def test_a_filter_finds_what_lies_far_behind(jobs: Queue[Any]) -> None:
    jobs.put_many(range(20))
    jobs.put("needle", labels=["red"], group="g")
    assert [message.value for message in jobs.browse(label="red")] == ["needle"]
    assert (jobs.stats(label="red").ready, jobs.stats(label="red").after, jobs.group("g").stats().ready) == (1, None, 1)
    assert jobs.cancel(label="red").count == 1
    assert jobs.length() == 20


def test_browsing_ends_with_as_many_as_were_asked_for(jobs: Queue[Any]) -> None:
    for number in range(9):
        jobs.put(number, labels=["odd"] if number % 2 else [])
    assert [message.value for message in jobs.browse(label="odd", limit=3)] == [1, 3, 5]


def test_peek_reads_one_message_where_the_first_is_due_and_more_only_behind_those_that_are_not(jobs: Queue[Any], store: Noting) -> None:
    jobs.put("first")
    jobs.put("second")
    assert peeked(jobs) == "first"
    assert store.asked == [1]
    jobs.put_many(range(5), priority=1, delay_s=60)
    store.asked.clear()
    assert peeked(jobs) == "first"
    assert store.asked == [1, 10]
