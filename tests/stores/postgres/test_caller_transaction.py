"""Puts, settlements and writes on a psycopg connection of the caller's own, for threads and for tasks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from holdfast import ControlPlaneClient, Dict, Queue, QueueFull, StoreUnavailable, aio
from holdfast.commands.topics import queue_topic
from tests.postgres import own_postgres_url
from tests.runners import AsyncRunner, waiting_on

LONG_S = 60.0

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(own_postgres_url()) as made:
        yield made


@pytest.fixture
def connection(postgres_server: str) -> Iterator[Connection]:
    """As applications make them: psycopg begins a transaction at the first statement, and rows are what the application likes."""
    with psycopg.connect(postgres_server, row_factory=dict_row) as connection:
        connection.execute("create temporary table orders (id text)")
        connection.commit()
        yield connection


@pytest.fixture
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue.create("jobs", client=client)


@pytest.fixture
def shared(client: ControlPlaneClient) -> Dict[Any]:
    return Dict.create("shared", client=client)


def order(connection: Connection) -> None:
    connection.execute("insert into orders values ('o')")


def orders(connection: Connection) -> int:
    return len(connection.execute("select from orders").fetchall())


@pytest.mark.parametrize("comes", ["first", "last"])
def test_a_put_is_committed_or_vanishes_with_the_callers_row(connection: Connection, jobs: Queue[Any], comes: str) -> None:
    steps: list[Callable[[], Any]] = [lambda: jobs.put("work", connection=connection), lambda: order(connection)]
    for end in (connection.rollback, connection.commit):
        for step in steps if comes == "first" else reversed(steps):
            step()
        assert jobs.length() == 0, "others must not see it before the commit"
        end()
    assert (jobs.length(), orders(connection)) == (1, 1)


@pytest.mark.parametrize("mode", ["fair", "limited", "strict"])
def test_a_put_into_a_group_is_committed_or_vanishes(connection: Connection, jobs: Queue[Any], mode: str) -> None:
    jobs.configure(groups="strict") if mode == "strict" else jobs.configure(groups="fair", group_limit=1 if mode == "limited" else None)
    jobs.put("old 1", group="old")
    for end, length in ((connection.rollback, 1), (connection.commit, 4)):
        order(connection)
        jobs.put_many(["new 1", "new 2"], group="new", connection=connection)
        jobs.put("old 2", group="old", connection=connection)
        assert [one.name for one in jobs.groups()] == ["old"], "others must not see it before the commit"
        end()
        assert jobs.length() == length
    claimed = []
    while claims := jobs.claim_many(4):
        claimed.append({claim.value for claim in claims})
        jobs.ack(claims)
    assert claimed == ([{"old 1", "old 2", "new 1", "new 2"}] if mode == "fair" else [{"old 1", "new 1"}, {"old 2", "new 2"}])
    assert jobs.groups() == [], "a group without messages is not kept"


def test_an_open_put_into_a_group_whose_last_message_is_claimed_holds_up_its_settles_and_no_renewal(
    postgres_server: str, connection: Connection, jobs: Queue[Any]
) -> None:
    jobs.configure(groups="fair", group_limit=2)
    jobs.put_many([1], group="a")
    jobs.put_many([2], group="b")
    first, other = jobs.claim_many(2)
    jobs.put(3, group="a", connection=connection)
    jobs.renew(first, lease_s=30.0)
    jobs.ack(other)
    with (
        psycopg.connect(postgres_server, options="-c lock_timeout=50ms") as impatient,
        pytest.raises(StoreUnavailable, match="lock timeout"),
    ):
        first.ack(connection=impatient)
    connection.commit()
    jobs.ack(first)
    assert jobs.get() == 3


def test_a_step_is_committed_or_vanishes_as_a_whole(
    client: ControlPlaneClient, connection: Connection, jobs: Queue[Any], shared: Dict[Any]
) -> None:
    jobs.put("work")
    claim = jobs.claim(claimer="w")
    assert claim is not None
    for end in (connection.rollback, connection.commit):
        assert (jobs.stats().leased, shared.get("state"), orders(connection)) == (1, None, 0)
        order(connection)
        with client.together(connection=connection) as step:
            step.ack(claim)
            step.put("next", "more")
            step.write(shared, "state", "done")
        end()
    assert (jobs.stats().total, shared.get("state"), orders(connection)) == (0, "done", 1)
    assert Queue.from_name("next", client=client).length() == 1


def test_settling_and_writing_are_committed_or_vanish(connection: Connection, jobs: Queue[Any], shared: Dict[Any]) -> None:
    jobs.put("work")
    shared.put("n", 1)
    claim = jobs.claim(claimer="w")
    assert claim is not None
    for end in (connection.rollback, connection.commit):
        assert (jobs.stats().leased, shared.get("n")) == (1, 1)
        assert claim.ack(connection=connection).count == 1
        assert shared.compare_and_set("n", 1, 2, connection=connection).updated
        assert not shared.compare_and_set("n", 1, 3, connection=connection).updated, "it must see what the transaction wrote"
        end()
    assert (jobs.stats().total, shared.get("n")) == (0, 2)


def test_a_refusal_leaves_the_callers_work_as_it_was(connection: Connection, jobs: Queue[Any]) -> None:
    jobs.configure(maxsize=1)
    order(connection)
    jobs.put("first", connection=connection)
    with pytest.raises(QueueFull):
        jobs.put("second", connection=connection)
    connection.commit()
    assert (jobs.length(), orders(connection)) == (1, 1)


def test_a_refused_first_statement_leaves_no_transaction_behind(connection: Connection, jobs: Queue[Any]) -> None:
    jobs.configure(maxsize=1)
    jobs.put("full")
    with pytest.raises(QueueFull):
        jobs.put("work", connection=connection)
    assert connection.info.transaction_status == TransactionStatus.IDLE


def test_a_connection_that_commits_every_statement_does_so_here(postgres_server: str, jobs: Queue[Any]) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        jobs.put("work", connection=connection)
        assert jobs.length() == 1
        with connection.transaction(force_rollback=True):
            jobs.put("more", connection=connection)
    assert jobs.length() == 1


def test_another_database_is_refused(postgres_server: str, jobs: Queue[Any]) -> None:
    with psycopg.connect(postgres_server, dbname="template1") as other, pytest.raises(ValueError, match="the database 'template1'"):
        jobs.put("work", connection=other)


def test_what_is_no_connection_of_threads_is_refused(jobs: Queue[Any]) -> None:
    with pytest.raises(TypeError, match=r"a psycopg\.Connection here, not builtins\.str"):
        jobs.put("work", connection="orders")  # type: ignore[arg-type]


@pytest.mark.anyio
class TestTasks:
    @pytest.fixture
    async def tasks(self, client: ControlPlaneClient, jobs: Queue[Any]) -> AsyncIterator[aio.Queue[Any]]:
        yield jobs.aio
        await client.aio.close()

    @pytest.fixture
    async def own(self, postgres_server: str) -> AsyncIterator[AsyncConnection]:
        async with await psycopg.AsyncConnection.connect(postgres_server) as own:
            yield own

    async def test_a_put_is_committed_or_vanishes(self, tasks: aio.Queue[Any], own: AsyncConnection) -> None:
        for end in (own.rollback, own.commit):
            await tasks.put("work", connection=own)
            assert await tasks.length() == 0, "others must not see it before the commit"
            await end()
        assert await tasks.length() == 1

    async def test_a_refusal_leaves_the_callers_work_as_it_was(self, tasks: aio.Queue[Any], own: AsyncConnection) -> None:
        await tasks.configure(maxsize=1)
        await tasks.put("first", connection=own)
        with pytest.raises(QueueFull):
            await tasks.put("second", connection=own)
        await own.commit()
        with pytest.raises(QueueFull):
            await tasks.put("third", connection=own)
        assert own.info.transaction_status == TransactionStatus.IDLE
        assert await tasks.get_many(10) == ["first"]

    async def test_a_connection_of_threads_is_refused(self, tasks: aio.Queue[Any], connection: Connection) -> None:
        with pytest.raises(TypeError, match="AsyncConnection"):
            await tasks.put("work", connection=connection)  # type: ignore[arg-type]

    async def test_whoever_waits_is_woken_by_the_commit_and_not_before(
        self, client: ControlPlaneClient, tasks: aio.Queue[Any], own: AsyncConnection
    ) -> None:
        async with AsyncRunner() as runner:
            waiting = runner.start(lambda: tasks.claim(claimer="w", timeout_s=LONG_S, poll_interval_s=10 * LONG_S))
            await runner.until(lambda: waiting_on(client.store, queue_topic("jobs")) == 1)
            await tasks.put("work", connection=own)
            assert waiting_on(client.store, queue_topic("jobs")) == 1
            await own.commit()
            claim = await asyncio.wait_for(waiting.result(), LONG_S / 2)
        assert claim is not None
        assert claim.value == "work"
