"""Each block of sentinel's document runs as it is documented, on connections of `sqlite3` and psycopg; only the import differs."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces import sentinel
from tests.sentinel_databases import own_database, postgres_connections, sqlite_connections


@pytest.fixture(params=["sqlite", "postgres"])
def get_conn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    if request.param == "sqlite":
        with sqlite_connections(tmp_path) as connected:
            yield connected
    else:
        with own_database(request.getfixturevalue("postgres_server")) as url, postgres_connections(url) as connected:
            yield connected


@pytest.fixture
def conn(get_conn: Callable[[], Any]) -> Any:
    return get_conn()


def test_the_example(conn: Any, get_conn: Callable[[], Any]) -> None:
    processed = []

    def process_order() -> None:
        processed.append("order_123")

    with sentinel.lease(conn, "order_123", ttl_ms=5000, get_conn=get_conn):
        process_order()
    assert processed == ["order_123"]


def test_the_calls(conn: Any) -> None:
    key = "order_123"

    result = sentinel.acquire(conn, key, ttl_ms=5000)
    assert (result.acquired, type(result.owner_id), type(result.fencing_token)) == (True, str, int)
    assert result.expires_at is not None
    owner_id: Any = result.owner_id

    beat = sentinel.heartbeat(conn, key, owner_id, ttl_ms=5000)
    assert beat.extended

    freed = sentinel.release(conn, key, owner_id)
    assert freed.released


def test_the_fenced_write(conn: Any) -> None:
    conn.execute("create table orders (id integer primary key, status text, fencing_token bigint not null default 0)")
    conn.execute("insert into orders (id, status) values (1, 'new')")
    token = sentinel.acquire(conn, "order_1").fencing_token
    update = "UPDATE orders SET status = 'paid', fencing_token = %s WHERE id = %s AND fencing_token <= %s;"
    if isinstance(conn, sqlite3.Connection):
        update = update.replace("%s", "?")
    assert conn.execute(update, (token, 1, token)).rowcount == 1
    assert conn.execute(update, (0, 1, 0)).rowcount == 0
