"""The functions in a schema are those of the code that opened it, unless a newer release put its own there."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.connect import connect
from holdfast.stores.postgres import schema
from holdfast.testing.conformance.asking import put, stats

OURS = schema.functions()
OLDER = schema.Functions((0, 0, 9), "0123456789abcdef")
ANOTHER_BUILD = OURS._replace(digest="0123456789abcdef")
NEWER = schema.Functions((*OURS.release[:2], OURS.release[2] + 1), "0123456789abcdef")


@pytest.fixture
def url(postgres_server: str) -> str:
    return f"{postgres_server}?schema=upgraded"


@pytest.fixture
def connection(url: str, postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    """To a store one of whose functions somebody replaced."""
    connect(url).close()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create or replace function upgraded.prune_some() returns void language sql as $$select 'theirs'$$")
        yield connection
        connection.execute("drop schema upgraded cascade")


def keep(connection: psycopg.Connection[Any], functions: schema.Functions | None) -> None:
    """Say which functions are there; None as before that was kept."""
    connection.execute("delete from upgraded.meta where name = 'functions'")
    if functions is not None:
        connection.execute("insert into upgraded.meta values ('functions', %s)", (str(functions),))


def kept(connection: psycopg.Connection[Any]) -> schema.Functions:
    row = connection.execute("select value from upgraded.meta where name = 'functions'").fetchone()
    assert row is not None
    return schema.Functions.parse(row[0])


def are_theirs(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("select prosrc like '%theirs%' from pg_proc where oid = 'upgraded.prune_some'::regproc").fetchone()
    assert row is not None
    return bool(row[0])


@pytest.mark.parametrize("theirs", [None, OLDER, ANOTHER_BUILD], ids=["before it was kept", "older", "another build"])
def test_functions_that_differ_are_replaced_when_the_store_is_opened(
    connection: psycopg.Connection[Any], url: str, theirs: schema.Functions | None
) -> None:
    keep(connection, theirs)
    store = connect(url)
    put(store, "a")
    assert stats(store).ready == 1
    store.close()
    assert not are_theirs(connection)
    assert kept(connection) == OURS


@pytest.mark.parametrize("theirs", [OURS, NEWER], ids=["ours", "newer"])
def test_functions_that_are_ours_or_of_a_newer_release_stay(
    connection: psycopg.Connection[Any], url: str, theirs: schema.Functions
) -> None:
    keep(connection, theirs)
    connect(url).close()
    assert are_theirs(connection)
    assert kept(connection) == theirs
