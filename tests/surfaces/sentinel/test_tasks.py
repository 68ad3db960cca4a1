"""sentinel's API for tasks, on psycopg's async connections."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from holdfast import HoldfastError, LeaseHeld, LeaseLost
from holdfast.surfaces import sentinel
from holdfast.surfaces.sentinel import aio
from holdfast.surfaces.sentinel.connections import in_transaction
from tests.sentinel_databases import postgres_connections, until_renewed

pytestmark = pytest.mark.anyio

KEY = "order_123"
LONG = 60_000
GetConn = Callable[[], Awaitable[Any]]


@pytest.fixture
def for_threads(sentinel_database: str) -> Iterator[Any]:
    with postgres_connections(sentinel_database) as connected:
        yield connected()


@pytest.fixture
async def get_conn(sentinel_database: str, for_threads: Any) -> AsyncIterator[GetConn]:
    assert not for_threads.closed
    async with AsyncExitStack() as stack:

        async def connected() -> Any:
            connection = await psycopg.AsyncConnection.connect(sentinel_database)
            stack.push_async_callback(connection.close)
            return connection

        yield connected


@pytest.fixture
async def conn(get_conn: GetConn) -> Any:
    return await get_conn()


async def test_the_calls_are_the_same_for_tasks(conn: Any, get_conn: GetConn) -> None:
    await aio.init_db(conn)
    held = await aio.acquire(conn, KEY, LONG, owner_id="one")
    other = await get_conn()
    assert (await aio.acquire(other, KEY)).held_by == "one"
    assert (await aio.heartbeat(other, KEY, held.owner_id or "", LONG)).extended
    assert (await aio.release(conn, KEY, held.owner_id or "")).released
    assert not in_transaction(conn)


async def test_in_an_open_transaction_who_asked_in_vain_is_in_nobodys_way(conn: Any, get_conn: GetConn) -> None:
    other = await get_conn()
    held = await aio.acquire(other, KEY, LONG)
    await conn.execute("select 1")
    assert not (await aio.acquire(conn, KEY)).acquired
    assert (await aio.heartbeat(other, KEY, held.owner_id or "")).extended
    assert in_transaction(conn)


async def test_a_lease_is_kept_alive_while_the_loop_is_blocked(conn: Any, get_conn: GetConn, for_threads: Any) -> None:
    async with aio.lease(conn, KEY, ttl_ms=2_000, get_conn=get_conn) as lease:
        until_renewed(for_threads, KEY)
        until_renewed(for_threads, KEY)
        lease.assert_valid()
        with pytest.raises(LeaseHeld):
            await aio.lease(await get_conn(), KEY).__aenter__()
    assert not lease.is_valid
    assert (await aio.acquire(conn, KEY)).acquired


async def test_inside_a_transaction_a_lease_lives_on_a_connection_apart(conn: Any, get_conn: GetConn, for_threads: Any) -> None:
    await aio.init_db(conn)
    await conn.execute("select 1")
    with pytest.raises(HoldfastError, match="get_conn"):
        await aio.lease(conn, KEY).__aenter__()
    async with aio.lease(conn, KEY, ttl_ms=2_000, get_conn=get_conn) as lease:
        until_renewed(for_threads, KEY)
        assert lease.is_valid
    assert in_transaction(conn)
    assert sentinel.acquire(for_threads, KEY).acquired


async def test_a_lease_that_is_taken_over_is_lost(conn: Any, get_conn: GetConn, for_threads: Any) -> None:
    async def work() -> None:
        async with aio.lease(conn, KEY, ttl_ms=300, get_conn=get_conn, max_hold_ms=100) as lease:
            assert sentinel.acquire(for_threads, KEY, LONG, wait_ms=LONG).acquired
            assert not lease.is_valid

    with pytest.raises(LeaseLost):
        await work()


async def test_something_happens_once(get_conn: GetConn) -> None:
    calls = []

    async def charge(amount: int) -> int:
        calls.append(amount)
        return amount

    keeper = aio.AsyncSentinel(get_conn, namespace="payments")
    first = await keeper.once(KEY, charge, kwargs={"amount": 5})
    again = await keeper.once(KEY, charge, kwargs={"amount": 5})
    assert (first.response, first.cached, again.response, again.cached, calls) == (5, False, 5, True, [5])
    record = await keeper.reconcile.reconcile(KEY)
    assert record is not None
    assert await keeper.reconcile.reset(KEY)
