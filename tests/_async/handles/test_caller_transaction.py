"""Puts, settlements and writes on a connection of the caller's own: they commit or vanish with the caller's work."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.together import AsyncTogether
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import queue_topic, watch_topic
from holdfast.errors import ClaimLost, QueueFull, Refused, StoreError
from holdfast.results import MISSING

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[ControlPlaneClient]:
    async with ControlPlaneClient(f"sqlite:///{tmp_path}/app.db") as made:
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
def jobs(client: ControlPlaneClient) -> AsyncQueue[Any]:
    return AsyncQueue.from_name("jobs", client=client)


@pytest.fixture
def shared(client: ControlPlaneClient) -> AsyncDict[Any]:
    return AsyncDict.from_name("shared", client=client)


def order(connection: sqlite3.Connection) -> None:
    connection.execute("insert into orders values ('o')")


def orders(connection: sqlite3.Connection) -> int:
    return connection.execute("select count(*) from orders").fetchone()[0]  # type: ignore[no-any-return]


async def test_a_put_is_committed_with_the_callers_row(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    order(connection)
    message_id = await jobs.put("work", connection=connection)
    assert message_id.created
    assert await jobs.length() == 0, "others must not see it before the commit"
    connection.commit()
    assert (await jobs.length(), orders(connection)) == (1, 1)


async def test_puts_vanish_with_the_callers_rollback(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    await jobs.put("before")
    order(connection)
    await jobs.put("work", key="k", connection=connection)
    await jobs.put_many([1, 2, 3], connection=connection)
    await jobs.put_work("more", connection=connection)
    connection.rollback()
    assert orders(connection) == 0
    assert await jobs.get_many(10) == ["before"]


GROUPED: dict[str, dict[str, Any]] = {
    "fair": {"groups": "fair"},
    "limited": {"groups": "fair", "group_limit": 1},
    "strict": {"groups": "strict"},
}


@pytest.mark.parametrize("mode", GROUPED)
async def test_a_put_into_a_group_is_committed_or_vanishes(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: AsyncQueue[Any], mode: str
) -> None:
    await jobs.configure(**GROUPED[mode])
    await jobs.put("old 1", group="old")
    for end in (connection.rollback, connection.commit):
        order(connection)
        await jobs.put_many(["new 1", "new 2"], group="new", connection=connection)
        await jobs.put("old 2", group="old", connection=connection)
        assert [one.name for one in await jobs.groups()] == ["old"], "others must not see it before the commit"
        end()
        assert await jobs.length() == (1 if end == connection.rollback else 4)
    claimed = []
    while claims := await jobs.claim_many(4):
        claimed.append({claim.value for claim in claims})
        await jobs.ack(claims)
    assert claimed == ([{"old 1", "old 2", "new 1", "new 2"}] if mode == "fair" else [{"old 1", "new 1"}, {"old 2", "new 2"}])
    assert await jobs.groups() == [], "a group without messages is not kept"


async def test_the_first_statement_of_a_transaction_may_be_ours(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    await jobs.put("work", connection=connection)
    order(connection)
    connection.rollback()
    assert (await jobs.length(), orders(connection)) == (0, 0)
    await jobs.put("work", connection=connection)
    order(connection)
    connection.commit()
    assert (await jobs.length(), orders(connection)) == (1, 1)


async def test_a_refused_first_statement_leaves_no_transaction_behind(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(maxsize=1)
    await jobs.put("full")
    with pytest.raises(QueueFull):
        await jobs.put("work", connection=connection)
    assert not connection.in_transaction
    await jobs.clear()


async def test_a_refusal_leaves_the_callers_work_as_it_was(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(maxsize=1)
    order(connection)
    await jobs.put("first", connection=connection)
    with pytest.raises(QueueFull):
        await jobs.put("second", connection=connection)
    connection.commit()
    assert (await jobs.length(), orders(connection)) == (1, 1)


async def test_a_connection_that_commits_every_statement_does_so_here(client: ControlPlaneClient, tmp_path: Path) -> None:
    jobs = await AsyncQueue.create("jobs", client=client)
    connection = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    await jobs.put("work", connection=connection)
    assert await jobs.length() == 1
    connection.execute("begin")
    await jobs.put("more", connection=connection)
    connection.execute("rollback")
    assert await jobs.length() == 1
    connection.close()


async def test_nobody_is_woken_before_the_commit(client: ControlPlaneClient, connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    await jobs.put("before")
    topics = [queue_topic("jobs"), watch_topic(queue_topic("jobs"))]
    heard = [client.store.mark(topic).heard for topic in topics]
    await jobs.put("work", connection=connection)
    connection.rollback()
    assert [client.store.mark(topic).heard for topic in topics] == heard
    await jobs.put("after")
    assert [client.store.mark(topic).heard for topic in topics] != heard


SETTLEMENTS: dict[str, Callable[[AsyncQueue[Any], Any, sqlite3.Connection], Awaitable[Any]]] = {
    "ack": lambda jobs, claim, connection: jobs.ack(claim, connection=connection),
    "release": lambda jobs, claim, connection: jobs.release(claim, connection=connection),
    "fail": lambda jobs, claim, connection: jobs.fail(claim, connection=connection),
    "bury": lambda jobs, claim, connection: jobs.bury(claim, connection=connection),
    "claim.ack": lambda _, claim, connection: claim.ack(connection=connection),
    "claim.release": lambda _, claim, connection: claim.release(connection=connection),
    "claim.fail": lambda _, claim, connection: claim.fail(connection=connection),
}


@pytest.mark.parametrize("how", SETTLEMENTS)
async def test_settling_is_committed_or_vanishes(connection: sqlite3.Connection, jobs: AsyncQueue[Any], how: str) -> None:
    await jobs.put("work")
    claim = await jobs.claim(claimer="w")
    order(connection)
    assert (await SETTLEMENTS[how](jobs, claim, connection)).count == 1
    connection.rollback()
    assert (await jobs.stats()).leased == 1, "the claim must be as it was"
    assert (await SETTLEMENTS[how](jobs, claim, connection)).count == 1
    connection.commit()
    assert (await jobs.stats()).leased == 0


async def test_a_claim_that_was_lost_is_said_and_the_callers_work_stays(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    await jobs.put("work")
    claim = await jobs.claim(claimer="w")
    assert claim is not None
    await jobs.clear()
    order(connection)
    with pytest.raises(ClaimLost):
        await claim.ack(connection=connection)
    connection.commit()
    assert orders(connection) == 1


WRITES: dict[str, Callable[[AsyncDict[Any], sqlite3.Connection], Awaitable[Any]]] = {
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
async def test_every_write_is_committed_or_vanishes(connection: sqlite3.Connection, shared: AsyncDict[Any], how: str) -> None:
    await shared.put("n", 1)
    order(connection)
    await WRITES[how](shared, connection)
    assert await shared.items() == [("n", 1)]
    connection.rollback()
    assert await shared.items() == [("n", 1)]
    await WRITES[how](shared, connection)
    connection.commit()
    assert await shared.items() != [("n", 1)]


async def test_a_step_is_committed_or_vanishes_as_a_whole(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: AsyncQueue[Any], shared: AsyncDict[Any]
) -> None:
    await jobs.put("work")
    claim = await jobs.claim(claimer="w")
    assert claim is not None

    async def step() -> None:
        order(connection)
        async with AsyncTogether(client, connection) as t:
            t.ack(claim)
            t.put("next", "more")
            t.write(shared, "state", "done")

    await step()
    connection.rollback()
    assert ((await jobs.stats()).leased, await shared.get("state"), orders(connection)) == (1, None, 0)
    await step()
    connection.commit()
    assert ((await jobs.stats()).total, await shared.get("state"), orders(connection)) == (0, "done", 1)
    assert await AsyncQueue.from_name("next", client=client).length() == 1


async def test_a_refused_step_leaves_the_callers_work_as_it_was(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: AsyncQueue[Any], shared: AsyncDict[Any]
) -> None:
    order(connection)
    step = AsyncTogether(client, connection)
    step.put(jobs, "never")
    step.expect(shared, "state", "there")
    with pytest.raises(Refused):
        async with step:
            pass
    connection.commit()
    assert (await jobs.length(), orders(connection)) == (0, 1)


async def test_work_is_completed_in_the_callers_transaction(
    client: ControlPlaneClient, connection: sqlite3.Connection, jobs: AsyncQueue[Any]
) -> None:
    await jobs.put_work("work")
    work = await jobs.claim_work(claimer="w")
    assert work is not None
    await work.complete("result", puts={"next": [1]}, connection=connection)
    connection.rollback()
    assert (await jobs.stats()).leased == 1
    await work.complete("result", puts={"next": [1]}, connection=connection)
    connection.commit()
    assert await AsyncDict.from_name("jobs-results", client=client).get(work.id) == "result"
    assert await AsyncQueue.from_name("next", client=client).length() == 1


async def test_waiting_for_room_is_refused(connection: sqlite3.Connection, jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(ValueError, match="timeout_s="):
        await jobs.put("work", timeout_s=1.0, connection=connection)


async def test_a_connection_to_another_file_is_refused(jobs: AsyncQueue[Any], tmp_path: Path) -> None:
    for place in (str(tmp_path / "other.db"), ":memory:"):
        other = sqlite3.connect(place)
        with pytest.raises(ValueError, match=r"the store is .*app\.db"):
            await jobs.put("work", connection=other)
        other.close()


async def test_what_is_no_connection_is_refused(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(TypeError, match=r"must be a sqlite3 connection, not builtins\.str"):
        await jobs.put("work", connection="app.db")  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["memory://", "lmdb:///{path}/store"])
async def test_a_store_that_has_no_such_transactions_says_so(connection: sqlite3.Connection, tmp_path: Path, url: str) -> None:
    async with ControlPlaneClient(url.format(path=tmp_path)) as client:
        jobs = AsyncQueue[Any].from_name("jobs", client=client)
        with pytest.raises(StoreError, match=f"{url.partition(':')[0]}:// cannot take part in the transaction"):
            await jobs.put("work", connection=connection)


async def test_a_comparison_sees_what_the_transaction_wrote(connection: sqlite3.Connection, shared: AsyncDict[Any]) -> None:
    await shared.put("n", 1, connection=connection)
    assert (await shared.compare_and_set("n", 1, 2, connection=connection)).updated
    assert not (await shared.compare_and_set("n", MISSING, 3, connection=connection)).updated
    connection.commit()
    assert await shared.get("n") == 2
