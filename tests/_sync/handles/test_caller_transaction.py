# Generated from tests/_async/handles/test_caller_transaction.py by tools/unasync.py; do not edit.
"""Puts, settlements and writes on a connection of the caller's own: they commit or vanish with the caller's work."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.together import Together
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import queue_topic, watch_topic
from holdfast.errors import ClaimLost, QueueFull, Refused, StoreError
from holdfast.results import MISSING


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/app.db") as made:
        yield made


@pytest.fixture
def connection(client: ControlPlaneClient, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """As applications make them: Python begins a transaction at the first statement that writes."""
    _ = client.store
    connection = sqlite3.connect(tmp_path / "app.db")
    connection.execute("create table orders (id text primary key)")
    yield connection
    connection.close()


@pytest.fixture
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue.from_name("jobs", client=client)


@pytest.fixture
def shared(client: ControlPlaneClient) -> Dict[Any]:
    return Dict.from_name("shared", client=client)


def order(connection: sqlite3.Connection) -> None:
    connection.execute("insert into orders values ('o')")


def orders(connection: sqlite3.Connection) -> int:
    return connection.execute("select count(*) from orders").fetchone()[0]  # type: ignore[no-any-return]


def test_a_put_is_committed_with_the_callers_row(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    order(connection)
    message_id = jobs.put("work", connection=connection)
    assert message_id.created
    assert jobs.length() == 0, "others must not see it before the commit"
    connection.commit()
    assert (jobs.length(), orders(connection)) == (1, 1)


def test_puts_vanish_with_the_callers_rollback(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.put("before")
    order(connection)
    jobs.put("work", key="k", connection=connection)
    jobs.put_many([1, 2, 3], connection=connection)
    jobs.put_work("more", connection=connection)
    connection.rollback()
    assert orders(connection) == 0
    assert jobs.get_many(10) == ["before"]


GROUPED: dict[str, dict[str, Any]] = {
    "fair": {"groups": "fair"},
    "limited": {"groups": "fair", "group_limit": 1},
    "strict": {"groups": "strict"},
}


@pytest.mark.parametrize("mode", GROUPED)
def test_a_put_into_a_group_is_committed_or_vanishes(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: Queue[Any], mode: str
) -> None:
    jobs.configure(**GROUPED[mode])
    jobs.put("old 1", group="old")
    for end in (connection.rollback, connection.commit):
        order(connection)
        jobs.put_many(["new 1", "new 2"], group="new", connection=connection)
        jobs.put("old 2", group="old", connection=connection)
        assert [one.name for one in jobs.groups()] == ["old"], "others must not see it before the commit"
        end()
        assert jobs.length() == (1 if end == connection.rollback else 4)
    claimed = []
    while claims := jobs.claim_many(4):
        claimed.append({claim.value for claim in claims})
        jobs.ack(claims)
    assert claimed == ([{"old 1", "old 2", "new 1", "new 2"}] if mode == "fair" else [{"old 1", "new 1"}, {"old 2", "new 2"}])
    assert jobs.groups() == [], "a group without messages is not kept"


def test_the_first_statement_of_a_transaction_may_be_ours(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.put("work", connection=connection)
    order(connection)
    connection.rollback()
    assert (jobs.length(), orders(connection)) == (0, 0)
    jobs.put("work", connection=connection)
    order(connection)
    connection.commit()
    assert (jobs.length(), orders(connection)) == (1, 1)


def test_a_refused_first_statement_leaves_no_transaction_behind(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.configure(maxsize=1)
    jobs.put("full")
    with pytest.raises(QueueFull):
        jobs.put("work", connection=connection)
    assert not connection.in_transaction
    jobs.clear()


def test_a_refusal_leaves_the_callers_work_as_it_was(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.configure(maxsize=1)
    order(connection)
    jobs.put("first", connection=connection)
    with pytest.raises(QueueFull):
        jobs.put("second", connection=connection)
    connection.commit()
    assert (jobs.length(), orders(connection)) == (1, 1)


def test_a_connection_that_commits_every_statement_does_so_here(client: ControlPlaneClient, tmp_path: Path) -> None:
    jobs = Queue.create("jobs", client=client)
    connection = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    jobs.put("work", connection=connection)
    assert jobs.length() == 1
    connection.execute("begin")
    jobs.put("more", connection=connection)
    connection.execute("rollback")
    assert jobs.length() == 1
    connection.close()


def test_nobody_is_woken_before_the_commit(client: ControlPlaneClient, connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.put("before")
    topics = [queue_topic("jobs"), watch_topic(queue_topic("jobs"))]
    heard = [client.store.mark(topic).heard for topic in topics]
    jobs.put("work", connection=connection)
    connection.rollback()
    assert [client.store.mark(topic).heard for topic in topics] == heard
    jobs.put("after")
    assert [client.store.mark(topic).heard for topic in topics] != heard


SETTLEMENTS: dict[str, Callable[[Queue[Any], Any, sqlite3.Connection], Any]] = {
    "ack": lambda jobs, claim, connection: jobs.ack(claim, connection=connection),
    "release": lambda jobs, claim, connection: jobs.release(claim, connection=connection),
    "fail": lambda jobs, claim, connection: jobs.fail(claim, connection=connection),
    "bury": lambda jobs, claim, connection: jobs.bury(claim, connection=connection),
    "claim.ack": lambda _, claim, connection: claim.ack(connection=connection),
    "claim.release": lambda _, claim, connection: claim.release(connection=connection),
    "claim.fail": lambda _, claim, connection: claim.fail(connection=connection),
}


@pytest.mark.parametrize("how", SETTLEMENTS)
def test_settling_is_committed_or_vanishes(connection: sqlite3.Connection, jobs: Queue[Any], how: str) -> None:
    jobs.put("work")
    claim = jobs.claim(claimer="w")
    order(connection)
    assert (SETTLEMENTS[how](jobs, claim, connection)).count == 1
    connection.rollback()
    assert (jobs.stats()).leased == 1, "the claim must be as it was"
    assert (SETTLEMENTS[how](jobs, claim, connection)).count == 1
    connection.commit()
    assert (jobs.stats()).leased == 0


def test_a_claim_that_was_lost_is_said_and_the_callers_work_stays(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.put("work")
    claim = jobs.claim(claimer="w")
    assert claim is not None
    jobs.clear()
    order(connection)
    with pytest.raises(ClaimLost):
        claim.ack(connection=connection)
    connection.commit()
    assert orders(connection) == 1


WRITES: dict[str, Callable[[Dict[Any], sqlite3.Connection], Any]] = {
    "put": lambda shared, connection: shared.put("n", 2, connection=connection),
    "update": lambda shared, connection: shared.update({"n": 2, "m": 3}, connection=connection),
    "delete": lambda shared, connection: shared.delete("n", connection=connection),
    "drop": lambda shared, connection: shared.delete(connection=connection),
    "clear": lambda shared, connection: shared.clear(connection=connection),
    "clear prefix": lambda shared, connection: shared.clear(prefix="n", connection=connection),
    "pop": lambda shared, connection: shared.pop("n", connection=connection),
    "increment": lambda shared, connection: shared.increment("n", connection=connection),
    "compare_and_set": lambda shared, connection: shared.compare_and_set("n", 1, 2, connection=connection),
    "put_if_absent": lambda shared, connection: shared.put_if_absent("m", 2, connection=connection),
    "update_with": lambda shared, connection: shared.update_with("n", lambda n: n + 1, connection=connection),
}


@pytest.mark.parametrize("how", WRITES)
def test_every_write_is_committed_or_vanishes(connection: sqlite3.Connection, shared: Dict[Any], how: str) -> None:
    shared.put("n", 1)
    order(connection)
    WRITES[how](shared, connection)
    assert shared.items() == [("n", 1)]
    connection.rollback()
    assert shared.items() == [("n", 1)]
    WRITES[how](shared, connection)
    connection.commit()
    assert shared.items() != [("n", 1)]


def test_a_step_is_committed_or_vanishes_as_a_whole(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: Queue[Any], shared: Dict[Any]
) -> None:
    jobs.put("work")
    claim = jobs.claim(claimer="w")
    assert claim is not None

    def step() -> None:
        order(connection)
        with Together(client, connection) as t:
            t.ack(claim)
            t.put("next", "more")
            t.write(shared, "state", "done")

    step()
    connection.rollback()
    assert ((jobs.stats()).leased, shared.get("state"), orders(connection)) == (1, None, 0)
    step()
    connection.commit()
    assert ((jobs.stats()).total, shared.get("state"), orders(connection)) == (0, "done", 1)
    assert Queue.from_name("next", client=client).length() == 1


def test_a_refused_step_leaves_the_callers_work_as_it_was(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: Queue[Any], shared: Dict[Any]
) -> None:
    order(connection)
    step = Together(client, connection)
    step.put(jobs, "never")
    step.expect(shared, "state", "there")
    with pytest.raises(Refused), step:
        pass
    connection.commit()
    assert (jobs.length(), orders(connection)) == (0, 1)


def test_work_is_completed_in_the_callers_transaction(client: ControlPlaneClient, connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    jobs.put_work("work")
    work = jobs.claim_work(claimer="w")
    assert work is not None
    work.complete("result", puts={"next": [1]}, connection=connection)
    connection.rollback()
    assert (jobs.stats()).leased == 1
    work.complete("result", puts={"next": [1]}, connection=connection)
    connection.commit()
    assert Dict.from_name("jobs-results", client=client).get(work.id) == "result"
    assert Queue.from_name("next", client=client).length() == 1


def test_waiting_for_room_is_refused(connection: sqlite3.Connection, jobs: Queue[Any]) -> None:
    with pytest.raises(ValueError, match="timeout_s="):
        jobs.put("work", timeout_s=1.0, connection=connection)


def test_a_connection_to_another_file_is_refused(jobs: Queue[Any], tmp_path: Path) -> None:
    for place in (str(tmp_path / "other.db"), ":memory:"):
        other = sqlite3.connect(place)
        with pytest.raises(ValueError, match=r"the store is .*app\.db"):
            jobs.put("work", connection=other)
        other.close()


def test_what_is_no_connection_is_refused(jobs: Queue[Any]) -> None:
    with pytest.raises(TypeError, match=r"must be a sqlite3 connection, not builtins\.str"):
        jobs.put("work", connection="app.db")  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["memory://", "lmdb:///{path}/store"])
def test_a_store_that_has_no_such_transactions_says_so(connection: sqlite3.Connection, tmp_path: Path, url: str) -> None:
    with ControlPlaneClient(url.format(path=tmp_path)) as client:
        jobs = Queue[Any].from_name("jobs", client=client)
        with pytest.raises(StoreError, match=f"{url.partition(':')[0]}:// cannot take part in the transaction"):
            jobs.put("work", connection=connection)


def test_a_comparison_sees_what_the_transaction_wrote(connection: sqlite3.Connection, shared: Dict[Any]) -> None:
    shared.put("n", 1, connection=connection)
    assert (shared.compare_and_set("n", 1, 2, connection=connection)).updated
    assert not (shared.compare_and_set("n", MISSING, 3, connection=connection)).updated
    connection.commit()
    assert shared.get("n") == 2
