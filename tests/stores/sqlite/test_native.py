"""Puts that share a commit are carried out together where they are alike, and as if each were alone where they are not."""

from pathlib import Path

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Changes, Configure, Item, Put, Puts
from holdfast.errors import QueueFull
from holdfast.stores.committing import Job
from holdfast.stores.sqlite.store import SqliteStore


def put(message_id: str, queue: str = "jobs") -> Job:
    return Job(Put(queue, [Item(message_id, Raw(b"1"))]))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    opened = SqliteStore(tmp_path / "store.db", durability="process")
    opened.execute(Configure("queue", "jobs"))
    return opened


def test_puts_of_one_commit_keep_their_order_and_have_an_event_each(store: SqliteStore) -> None:
    jobs = [put(name) for name in "abcd"]
    store.run(jobs)
    assert [job.result() for job in jobs] == [Puts([name], [True]) for name in "abcd"]
    assert [message.id for message in store.execute(Browse("jobs")).messages] == ["a", "b", "c", "d"]
    told = [bytes(event.data) for event in store.execute(Changes("queue:jobs")).events if event.event == "put"]
    assert told == [b'{"ids":["a"]}', b'{"ids":["b"]}', b'{"ids":["c"]}', b'{"ids":["d"]}']
    store.close()


def test_an_id_that_is_taken_is_told_to_its_own_caller(store: SqliteStore) -> None:
    store.execute(Put("jobs", [Item("b", Raw(b"0"))]))
    jobs = [put("a"), put("b"), put("c"), put("a")]
    store.run(jobs)
    assert [job.result().created for job in jobs] == [[True], [False], [True], [False]]
    assert [message.id for message in store.execute(Browse("jobs")).messages] == ["b", "a", "c"]
    store.close()


def test_a_queue_that_fills_up_refuses_those_who_come_too_late(store: SqliteStore) -> None:
    store.execute(Configure("queue", "jobs", maxsize=2))
    jobs = [put("a"), put("b"), put("c")]
    store.run(jobs)
    assert [job.result().created for job in jobs[:2]] == [[True], [True]]
    with pytest.raises(QueueFull):
        jobs[2].result()
    store.close()


def test_puts_into_new_queues_create_them(store: SqliteStore) -> None:
    jobs = [put("a", "new"), put("b", "new"), put("c", "newer")]
    store.run(jobs)
    assert [job.result().created for job in jobs] == [[True]] * 3
    assert [message.id for message in store.execute(Browse("new")).messages] == ["a", "b"]
    store.close()
