"""sentinel's API on psycopg's connections as they are made by default: every statement begins a transaction that stays open.

Where a call would wait for somebody's open transaction the test would never end: both are in one thread.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import StoreUnavailable
from holdfast.stores.postgres.function_names import own
from holdfast.surfaces import sentinel
from holdfast.surfaces.sentinel.connections import in_transaction
from tests.sentinel_databases import until, until_renewed

ROOT = Path(__file__).parents[4]
KEY = "order_123"
LONG = 60_000


def begin(connection: Any, sql: str = "select 1") -> None:
    connection.execute(sql)
    assert in_transaction(connection)


def owner(result: sentinel.AcquireResult) -> str:
    """Of a lease that was acquired."""
    assert result.owner_id is not None
    return result.owner_id


def test_the_documented_program_holds_the_lease_while_its_transaction_is_open(conn: Any, other: Any, get_conn: Callable[[], Any]) -> None:
    with sentinel.lease(conn, KEY, ttl_ms=2_000, get_conn=get_conn) as lease:
        begin(conn)
        until_renewed(other, KEY)  # The heartbeat has a connection of its own.
        assert lease.is_valid
    assert in_transaction(conn), "the transaction is the caller's"
    assert not sentinel.acquire(other, KEY).acquired, "what the body wrote is not committed yet"
    conn.commit()
    assert sentinel.acquire(other, KEY).acquired


def test_an_acquire_in_an_open_transaction_is_not_waited_for(conn: Any, other: Any) -> None:
    begin(conn)
    held = sentinel.acquire(conn, KEY, LONG)
    assert held.acquired
    told = sentinel.acquire(other, KEY)
    assert (told.acquired, told.fencing_token, told.owner_id) == (False, None, None)
    assert not sentinel.heartbeat(other, KEY, owner(held)).extended, "nobody else sees it yet"
    conn.commit()
    assert sentinel.heartbeat(other, KEY, owner(held), LONG).extended
    assert not sentinel.acquire(other, KEY).acquired


def test_a_takeover_in_an_open_transaction_is_not_waited_for(conn: Any, other: Any, get_conn: Callable[[], Any]) -> None:
    late = sentinel.acquire(other, KEY, ttl_ms=1)
    begin(conn)
    until(lambda: sentinel.acquire(conn, KEY, LONG).acquired)
    assert not sentinel.acquire(get_conn(), KEY).acquired
    assert not sentinel.release(conn, KEY, owner(late)).released
    conn.rollback()
    assert sentinel.acquire(other, KEY).acquired


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_release_in_an_open_transaction_counts_from_its_commit(conn: Any, other: Any, end: str) -> None:
    held = sentinel.acquire(conn, KEY, LONG)
    begin(conn)
    assert sentinel.release(conn, KEY, owner(held)).released
    assert not sentinel.acquire(other, KEY).acquired
    getattr(conn, end)()
    assert sentinel.acquire(other, KEY).acquired is (end == "commit")


def test_a_heartbeat_in_an_open_transaction_is_not_waited_for(conn: Any, other: Any) -> None:
    held = sentinel.acquire(conn, KEY, LONG)
    begin(conn)
    assert sentinel.heartbeat(conn, KEY, owner(held), LONG).extended
    assert not sentinel.acquire(other, KEY).acquired


def test_who_asked_in_vain_is_in_nobodys_way_while_his_transaction_is_open(conn: Any, other: Any, get_conn: Callable[[], Any]) -> None:
    held = sentinel.acquire(other, KEY, LONG)
    begin(conn)
    assert not sentinel.acquire(conn, KEY).acquired
    assert not sentinel.heartbeat(conn, KEY, "somebody").extended
    assert not sentinel.release(conn, KEY, "somebody").released
    assert sentinel.heartbeat(other, KEY, owner(held)).extended
    assert sentinel.release(other, KEY, owner(held)).released
    assert sentinel.acquire(get_conn(), KEY).acquired
    assert in_transaction(conn)


def test_the_settings_of_an_open_transaction_stay(conn: Any, other: Any) -> None:
    assert not in_transaction(other)
    begin(conn, "set local search_path = holdfast")
    begin(conn, "set local lock_timeout = '7s'")
    # What an acquire calls that met somebody else.
    begin(conn, own("select lock_lease_soon('', 'order_123')"))
    assert conn.execute("show lock_timeout").fetchone() == ("7s",)


def test_sessions_in_different_time_zones_agree(conn: Any, other: Any) -> None:
    for connection, zone in ((conn, "Pacific/Kiritimati"), (other, "Pacific/Pago_Pago")):
        connection.execute("select set_config('timezone', %s, false)", (zone,))
        connection.commit()
    tokens = []
    for first, second in ((conn, other), (other, conn)):
        held = sentinel.acquire(first, KEY, LONG)
        assert not sentinel.acquire(second, KEY, LONG).acquired
        beat = sentinel.heartbeat(second, KEY, owner(held), LONG)
        assert held.expires_at is not None
        assert beat.expires_at is not None
        assert 0 <= (beat.expires_at - held.expires_at).total_seconds() < LONG / 1000
        assert sentinel.release(first, KEY, owner(held)).released
        tokens.append(held.fencing_token or 0)
    assert tokens[0] < tokens[1]


def test_an_old_transaction_knows_what_time_it_is(conn: Any, other: Any) -> None:
    begin(conn)
    sentinel.acquire(other, KEY, ttl_ms=1)
    until(lambda: sentinel.acquire(conn, KEY, LONG).acquired)
    conn.commit()
    begin(conn, "select pg_sleep(0.2)")
    short = sentinel.acquire(conn, "another", ttl_ms=100)
    row = conn.execute("select %s > now() + interval '200 ms'", (short.expires_at,)).fetchone()
    assert row == (True,), "it lasts from when it was asked for, not from when the transaction began"


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_transaction_with_an_old_view_is_given_nothing_that_others_hold(conn: Any, other: Any, level: str) -> None:
    begin(conn, f"set transaction isolation level {level}")
    begin(conn, "select count(*) from holdfast.leases")
    assert sentinel.acquire(other, KEY, LONG).acquired
    with pytest.raises(StoreUnavailable):
        sentinel.acquire(conn, KEY)
    assert in_transaction(conn)


def test_a_body_whose_transaction_failed_raises_what_it_met_and_the_lease_ends_by_itself(
    conn: Any, other: Any, get_conn: Callable[[], Any]
) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero) as raised, sentinel.lease(conn, KEY, ttl_ms=300, get_conn=get_conn):
        conn.execute("select 1 / 0")
    assert "ends by itself" in raised.value.__notes__[0]
    assert sentinel.acquire(other, KEY, wait_ms=LONG).acquired


def test_a_connection_that_is_gone_says_so(conn: Any) -> None:
    conn.close()
    with pytest.raises(StoreUnavailable, match="closed or lost"):
        sentinel.acquire(conn, KEY)


def test_the_how_to_runs_on_postgresql(sentinel_database: str, get_conn: Callable[[], Any], tmp_path: Path) -> None:
    get_conn().execute("drop table if exists orders").connection.commit()
    page = tmp_path / "page.md"
    text = (ROOT / "docs/howto/from-sentinel.md").read_text()
    for before, after in {
        "import sqlite3": "import psycopg",
        'sqlite3.connect("app.db")': f"psycopg.connect({sentinel_database!r})",
        ', placeholder="?"': "",
        " = ?": " = %s",
    }.items():
        assert before in text
        text = text.replace(before, after)
    page.write_text(text)
    finished = subprocess.run(
        [sys.executable, str(ROOT / "tests/docs/examples.py"), str(page)], capture_output=True, text=True, check=False, timeout=100
    )
    assert (finished.returncode, finished.stderr) == (0, "")
