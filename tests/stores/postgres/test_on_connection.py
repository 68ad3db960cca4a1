"""The store on the caller's own connection to PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from holdfast.commands import Configure, Put
from holdfast.connect import connect, connect_async
from holdfast.errors import QueueFull, StoreError
from holdfast.stores import Store
from holdfast.stores.postgres.on_connection import BorrowedPostgresStore
from holdfast.testing.conformance.asking import acquire, claim, grant, ids, item, put, stats


@pytest.fixture
def url(postgres_server: str) -> Iterator[str]:
    """The default schema, which is what a borrowed connection uses."""
    yield postgres_server
    with psycopg.connect(postgres_server) as connection:
        connection.execute("drop schema if exists holdfast cascade")


@pytest.fixture
def other(url: str) -> Iterator[Store]:
    store = connect(url)
    yield store
    store.close()


def test_what_is_put_in_a_transaction_is_there_after_its_commit_and_not_before(url: str, other: Store) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("select 1")
        put(connect(connection), "a")
        assert stats(other).ready == 0
        connection.commit()
        assert ids(claim(other)) == ["a"]


def test_what_is_put_in_a_transaction_vanishes_with_it(url: str, other: Store) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("select 1")
        put(connect(connection), "a")
        connection.rollback()
    assert stats(other).total == 0


def test_an_idle_connection_is_committed(url: str, other: Store) -> None:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        put(connect(connection), "a")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert ids(claim(other)) == ["a"]


@pytest.mark.parametrize("factory", [psycopg.RawCursor, psycopg.ClientCursor])
def test_whatever_cursors_the_caller_s_connection_makes(url: str, other: Store, factory: type[psycopg.Cursor[Any]]) -> None:
    with psycopg.connect(url, cursor_factory=factory) as connection:
        put(connect(connection), "a")
        connection.execute("select 1")
        put(connect(connection), "b")
        connection.commit()
    assert ids(claim(other, 2)) == ["a", "b"]


@pytest.mark.anyio
async def test_whatever_cursors_a_connection_for_tasks_makes(url: str, other: Store) -> None:
    async with await psycopg.AsyncConnection.connect(url, cursor_factory=psycopg.AsyncRawCursor) as connection:
        await connect_async(connection).execute(Put("jobs", [item("a")]))
    assert ids(claim(other)) == ["a"]


def test_the_first_use_makes_the_tables_in_the_callers_transaction_and_leaves_its_settings(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("set search_path = pg_catalog")
        put(BorrowedPostgresStore(connection), "a")
        assert connection.execute("show search_path").fetchone() == ("pg_catalog",)
        connection.rollback()
        assert connection.execute("select count(*) from pg_namespace where nspname = 'holdfast'").fetchone() == (0,)


def test_a_refusal_undoes_itself_and_nothing_else(url: str, other: Store) -> None:
    other.execute(Configure("queue", "small", maxsize=1))
    with psycopg.connect(url) as connection:
        connection.execute("create temporary table mine ()")
        store = connect(connection)
        put(store, "a")
        with pytest.raises(QueueFull):
            store.execute(Put("small", [item("b"), item("c")]))
        put(store, "d")
    assert stats(other).ready == 2
    assert stats(other, "small").ready == 0


def test_a_lease_acquired_in_an_open_transaction_is_not_waited_for(url: str, other: Store) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("select 1")
        grant(connect(connection), "lock", lease_id="mine")
        assert acquire(other, "lock", lease_id="theirs").lease.lease_id != "theirs"
    assert acquire(other, "lock", lease_id="theirs").lease.lease_id == "mine"


def test_a_connection_for_threads_is_none_for_tasks(url: str) -> None:
    with psycopg.connect(url) as connection, pytest.raises(StoreError, match="AsyncConnection"):
        connect(connection).for_tasks()


@pytest.mark.anyio
async def test_tasks_borrow_as_threads_do(url: str, other: Store) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        store = connect_async(connection)
        async with connection.transaction():
            await store.execute(Put("jobs", [item("a")]))
            assert stats(other).ready == 0
        assert ids(claim(other)) == ["a"]
        await store.execute(Put("jobs", [item("b")]))
        assert ids(claim(other)) == ["b"]
        await store.aclose()
