"""Each block of sentinel's document runs as it is documented, on a `sqlite3` connection; only the import differs."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces import sentinel


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[Any]:
    connection = sqlite3.connect(tmp_path / "app.db")
    yield connection
    connection.close()


def test_the_example(conn: Any, tmp_path: Path) -> None:
    def get_conn() -> Any:
        return sqlite3.connect(tmp_path / "app.db")

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
    conn.execute("create table orders (id integer primary key, status text, fencing_token integer not null default 0)")
    conn.execute("insert into orders (id, status) values (1, 'new')")
    token = sentinel.acquire(conn, "order_1").fencing_token
    update = "UPDATE orders SET status = 'paid', fencing_token = ? WHERE id = ? AND fencing_token <= ?"
    assert conn.execute(update, (token, 1, token)).rowcount == 1
    assert conn.execute(update, (0, 1, 0)).rowcount == 0
