"""Killed connections, slow statements and many at once: never two holders, and tokens that only grow."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast import LeaseLost
from holdfast.surfaces import sentinel
from tests.sentinel_databases import until

KEY = "order_123"
LONG = 60_000


class Heartbeats:
    """Makes the heartbeat's connections, until no more are to be had, and kills them."""

    def __init__(self, get_conn: Callable[[], Any], most: int) -> None:
        self.made: list[int] = []
        self._get_conn = get_conn
        self._most = most

    def __call__(self) -> Any:
        if len(self.made) == self._most:
            raise OSError("no connection is to be had")
        connection = self._get_conn()
        self.made.append(connection.info.backend_pid)
        return connection

    def kill(self, through: Any) -> None:
        until(lambda: bool(self.made))
        assert through.execute("select pg_terminate_backend(%s, 60000)", (self.made[-1],)).fetchone() == (True,)
        through.commit()


def test_a_heartbeat_whose_connection_was_killed_goes_on_with_another(conn: Any, other: Any, get_conn: Callable[[], Any]) -> None:
    heartbeats = Heartbeats(get_conn, most=100)
    with sentinel.lease(conn, KEY, ttl_ms=2_000, get_conn=heartbeats) as lease:
        heartbeats.kill(other)
        until(lambda: len(heartbeats.made) > 1)
        assert not sentinel.acquire(other, KEY, wait_ms=2_500).acquired
        assert lease.is_valid


def test_a_lease_whose_heartbeat_was_killed_for_good_is_invalid_before_another_has_it(
    conn: Any, other: Any, get_conn: Callable[[], Any]
) -> None:
    heartbeats = Heartbeats(get_conn, most=1)
    killer = get_conn()

    def work() -> None:
        with sentinel.lease(conn, KEY, ttl_ms=1_000, get_conn=heartbeats) as lease:
            heartbeats.kill(killer)
            taken = sentinel.acquire(other, KEY, LONG, wait_ms=LONG)
            assert not lease.is_valid, "two holders"
            assert taken.fencing_token is not None
            assert lease.fencing_token is not None
            assert taken.fencing_token > lease.fencing_token

    with pytest.raises(LeaseLost):
        work()
    assert not sentinel.acquire(conn, KEY).acquired, "leaving took nothing from the new holder"


def test_an_acquire_that_took_longer_than_the_lease_lasts_holds_nothing(conn: Any, other: Any, get_conn: Callable[[], Any]) -> None:
    slow, observer = get_conn(), get_conn()
    slow.execute("lock table holdfast.leases in access exclusive mode")

    def waits_longer_than_it_lasts() -> bool:
        query = "select clock_timestamp() - query_start > '0.5 s' from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
        found = observer.execute(query, (conn.info.backend_pid,)).fetchone()
        observer.commit()
        return bool(found == (True,))

    def work() -> bool:
        with sentinel.lease(conn, KEY, ttl_ms=400, get_conn=get_conn) as lease:
            return lease.is_valid

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        until(waits_longer_than_it_lasts)
        slow.commit()
        with pytest.raises(LeaseLost):
            working.result(60)
    assert sentinel.acquire(other, KEY, wait_ms=LONG).acquired


def test_of_many_who_take_turns_no_two_hold_it_and_tokens_only_grow(other: Any, get_conn: Callable[[], Any]) -> None:
    inside = threading.Lock()
    tokens: list[int] = []

    def worker(number: int) -> None:
        connection = get_conn()
        connection.execute("select set_config('timezone', %s, false)", (f"UTC{number - 2:+d}",))
        connection.commit()
        for turn in range(8):
            if turn % 2:
                # In a transaction of its own, which is older than what others do meanwhile.
                connection.execute("select 1")
            held = sentinel.acquire(connection, KEY, LONG)
            while not held.acquired:
                connection.rollback()
                held = sentinel.acquire(connection, KEY, LONG, wait_ms=LONG)
            assert inside.acquire(blocking=False), "two holders"
            tokens.append(held.fencing_token or 0)
            inside.release()
            assert sentinel.release(connection, KEY, held.owner_id or "").released
            connection.commit()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(worker, range(4)))
    assert len(tokens) == 32
    assert tokens == sorted(set(tokens))
    assert sentinel.acquire(other, KEY).acquired
