"""The counts that PostgreSQL keeps: each change adds a row, rows are added up now and then, and whoever changes a message is counted."""

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from holdfast.commands import Clear, Count
from holdfast.connect import connect
from holdfast.stores import Store
from holdfast.stores.postgres.function_names import own
from holdfast.testing.conformance.asking import claim, put, settle, stats
from holdfast.testing.everything import miscounts
from tests.postgres import own_postgres_url
from tests.stored.loading import load_postgres

JOBS = "jobs"
TOTAL = "select sum(ready), sum(leased), sum(buffered), sum(dead), sum(done) from {} where queue = 'jobs'"


@pytest.fixture
def url() -> str:
    return own_postgres_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = connect(url)
    yield opened
    opened.close()


@pytest.fixture
def sql(url: str, store: Store) -> Iterator["psycopg.Connection[Any]"]:
    """As a person has it, or a release that knows no counts: with none of our settings but the path."""
    del store
    server, _, schema = url.partition("?schema=")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("select set_config('search_path', quote_ident(%s), false)", (unquote(schema),))
        yield connection


def kept(sql: "psycopg.Connection[Any]", table: str) -> list[int]:
    row = sql.execute(TOTAL.format(table)).fetchone()
    return [int(number or 0) for number in row or ()]


def work(store: Store, chance: random.Random) -> None:
    """Put, claim and settle in the plain and in the other ways."""
    for number in range(60):
        key = chance.choice((None, None, "a", "b"))
        put(store, *(f"{number}-{one}" for one in range(chance.choice((1, 1, 3)))), **({} if key is None else {"key": key}))
        claimed = claim(store, chance.choice((1, 1, 4))) if chance.random() < 0.6 else []
        for one in claimed:
            settle(store, [one], to=chance.choice(("done", "done", "ready", "dead")))


def test_recent_changes_and_what_they_were_added_to_are_what_there_is(store: Store, sql: "psycopg.Connection[Any]") -> None:
    work(store, random.Random(3))
    before = stats(store).total
    assert miscounts(store, [JOBS]) == []
    recent = kept(sql, "shifts")
    assert sum(recent) > 0
    sql.execute(own("select fold_shifts(10000)"))
    assert (kept(sql, "counts"), kept(sql, "shifts")) == (recent, [0] * 5)
    assert (stats(store).total, miscounts(store, [JOBS])) == (before, [])
    store.execute(Clear("queue", JOBS))
    sql.execute(own("select fold_shifts(10000)"))
    assert sql.execute("select count(*) from counts").fetchone() == (0,), "an empty queue has no row"


def test_whatever_anybody_changes_is_counted(store: Store, sql: "psycopg.Connection[Any]") -> None:
    put(store, "a", "b", "c")
    sql.execute("update messages set state = 'dead', dead_at = 1 where id = 'a'")
    sql.execute("delete from messages where id = 'b'")
    sql.execute("insert into messages (queue, id, position, created_at, value) values ('jobs', 'd', 1, 1, '1'), ('jobs', 'e', 1, 1, '1')")
    assert (stats(store).ready, stats(store).dead) == (3, 1)
    assert miscounts(store, [JOBS]) == []


def test_control_changes_that_are_not_counted_are_noticed(store: Store, sql: "psycopg.Connection[Any]") -> None:
    put(store, "a")
    sql.execute("set holdfast.counting = 'by_hand'")
    sql.execute("delete from messages")
    assert miscounts(store, [JOBS]) == ["queue 'jobs' counts 1 in line or claimed and has 0"]


def test_a_role_that_writes_messages_counts_them_after_an_upgrade() -> None:
    url = load_postgres("0.1.0")
    server, _, name = url.partition("?schema=")
    schema = Identifier(name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("drop role if exists writer")
        connection.execute("create role writer")
        connection.execute(SQL("grant usage on schema {} to writer").format(schema))
        connection.execute(SQL("grant select, insert, update, delete on {}.messages to writer").format(schema))
        with closing(connect(url)) as upgraded:
            before = upgraded.execute(Count(JOBS)).total
            connection.execute("set role writer")
            connection.execute(SQL("delete from {}.messages where queue = 'jobs' and state = 'ready'").format(schema))
            assert upgraded.execute(Count(JOBS)).total < before
            assert miscounts(upgraded, [JOBS]) == []
        connection.execute("reset role")
        connection.execute("drop owned by writer")
        connection.execute("drop role writer")
