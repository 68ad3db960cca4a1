"""The clock of a database server is set back: the store's own goes on, and the order of messages stays."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from holdfast.commands import Browse, Claim, Put
from holdfast.stores import Store
from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.function_names import function_texts, own
from holdfast.stores.postgres.store import PostgresStore, open_schema
from holdfast.stores.redis import RedisStore, scripts
from holdfast.testing.conformance.asking import acquire, browse, claim, claim_one, drain, ids, item, move, put, see, settle
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url

START_US = 1_700_000_000_000_000
HOUR = 3_600

PINNED = """
create or replace function server_us() returns bigint language plpgsql volatile
  as 'begin return (select us from test_server_clock); end'
"""

CLOCK = re.compile(r"create or replace function clock_us\(\).*?\n\$\$;", re.DOTALL)


class Server:
    """A store, and its server's clock, which a test sets."""

    def __init__(self, store: Store, show: Callable[[int], object]) -> None:
        self.store = store
        self._show = show
        self._now_us = START_US
        self.pass_by(0)

    def pass_by(self, seconds: float) -> None:
        """Let time pass, or with a negative number set the clock back."""
        self._now_us += round(seconds * 1_000_000)
        self._show(self._now_us)


@contextmanager
def on_postgres(broken: tuple[str, str] = ("", "")) -> Iterator[Server]:
    url = empty_postgres_url(" set back")
    address = parse(url)
    open_schema(address)
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute("select set_config('search_path', quote_ident(%s), false)", (address.schema,))
        connection.execute("create table if not exists test_server_clock (us bigint)")
        connection.execute("truncate test_server_clock")
        connection.execute("insert into test_server_clock values (0)")
        connection.execute(own(PINNED).encode())
        for text in function_texts():
            if "function clock_us()" in text:
                connection.execute(own(re.search(CLOCK, text)[0].replace(*broken)).encode())  # type: ignore[index]
        connection.execute("select setval('clock_seen', 0), setval('clock_ahead', 0)")
        store = PostgresStore(url)
        try:
            yield Server(store, lambda us: [*connection.execute("update test_server_clock set us = %s returning us", (us,))])
        finally:
            store.close()


@contextmanager
def on_redis(broken: tuple[str, str] = ("", "")) -> Iterator[Server]:
    url, whole = own_redis_url(), scripts._read
    key = f"{urlsplit(url).query}:test-clock"

    def read(name: str) -> str:
        return whole(name).replace('call("TIME")', f'call("HMGET", "{key}", "s", "us")').replace(*broken)

    scripts.script.cache_clear()
    connection: Any = redis.Redis.from_url(url.partition("?")[0])
    with patch.object(scripts, "_read", read):
        connection.hset(key, mapping={"s": 0, "us": 0})
        store = RedisStore(url)
        try:
            yield Server(store, lambda us: connection.hset(key, mapping={"s": us // 1_000_000, "us": us % 1_000_000}))
        finally:
            store.close()
            connection.close()
    scripts.script.cache_clear()


def test_a_store_that_follows_a_clock_that_was_set_back_is_noticed() -> None:
    with on_redis(("now + ahead < seen", "false")) as server, pytest.raises(AssertionError):
        test_what_was_ready_stays_ready_and_is_not_overtaken(server)
    with on_postgres(("shown + ahead < seen", "false")) as server, pytest.raises(AssertionError):
        test_what_was_ready_stays_ready_and_is_not_overtaken(server)


@pytest.fixture(params=[on_postgres, on_redis], ids=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as server:
        yield server


def test_what_was_ready_stays_ready_and_is_not_overtaken(server: Server) -> None:
    put(server.store, "a", "b")
    server.pass_by(-HOUR)
    put(server.store, "c")
    assert drain(server.store) == ["a", "b", "c"]


def test_what_comes_back_after_a_set_back_goes_to_the_back(server: Server) -> None:
    put(server.store, "a", "b")
    held = claim(server.store)
    server.pass_by(-HOUR)
    put(server.store, "c")
    server.pass_by(1)
    settle(server.store, held, to="ready")
    assert drain(server.store) == ["b", "c", "a"]


def test_leases_and_delays_go_on_by_the_time_that_passes(server: Server) -> None:
    put(server.store, "a")
    put(server.store, "late", delay_s=20)
    claim_one(server.store, lease_s=10)
    server.pass_by(1)
    put(server.store, "b")
    server.pass_by(-HOUR)
    assert ids(claim(server.store, lease_s=None)) == ["b"]
    server.pass_by(9)
    assert ids(claim(server.store, lease_s=None)) == ["a"], "a lease that was taken before the clock was set back must end in time"
    server.pass_by(10)
    assert ids(claim(server.store, lease_s=None)) == ["late"]


def test_new_leases_end_in_time_after_a_set_back(server: Server) -> None:
    put(server.store, "a")
    server.pass_by(-HOUR)
    claim_one(server.store, lease_s=10)
    server.pass_by(9)
    assert claim(server.store) == []
    server.pass_by(1)
    assert ids(claim(server.store)) == ["a"]


def test_a_lease_on_a_name_ends_in_time(server: Server) -> None:
    acquire(server.store, lease_id="one", lease_s=10)
    server.pass_by(-HOUR)
    assert acquire(server.store, lease_id="two", lease_s=10).lease.lease_id == "one"
    server.pass_by(10)
    assert acquire(server.store, lease_id="two", lease_s=10).lease.lease_id == "two"


def test_a_clock_set_back_twice_and_set_right_again_never_goes_back(server: Server) -> None:
    for number, seconds in enumerate((0, -HOUR, 5, -HOUR, 2 * HOUR, -1)):
        server.pass_by(seconds)
        put(server.store, str(number))
    positions = [message.position for message in browse(server.store)]
    assert positions == sorted(positions)
    assert drain(server.store) == [str(number) for number in range(6)]


def test_a_moment_of_the_wall_clock_is_one_of_the_server(server: Server) -> None:
    put(server.store, "a")
    server.pass_by(-HOUR)
    put(server.store, "b")
    server.store.execute(Put("jobs", [item("at", at=START_US - HOUR * 1_000_000 + 30_000_000)]))
    drain(server.store)
    server.pass_by(29)
    assert drain(server.store) == []
    server.pass_by(1)
    assert drain(server.store) == ["at"]


def test_a_redrive_and_a_look_see_no_moment_ahead(server: Server) -> None:
    put(server.store, "a")
    settle(server.store, [claim_one(server.store)], to="dead")
    server.pass_by(-HOUR)
    assert move(server.store, "ready") == ["a"]
    assert see(server.store, "a").position <= server.store.execute(Browse("jobs")).now
    assert ids(server.store.execute(Claim("jobs")).messages) == ["a"]
