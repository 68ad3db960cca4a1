"""A PostgreSQL for the tests of one process, and empty stores in it for each of them."""

import atexit
import os
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from holdfast.testing.servers import postgres

# An odd name, on purpose.
SCHEMA = f'test \'"%{{}}" {os.getpid()}'

TABLES = """
select string_agg(format('%I.%I', schemaname, tablename), ', ')
from pg_tables
where schemaname = current_setting('test.schema') and tablename not in ('meta', 'test_clock')
"""


@cache
def shared_postgres() -> str:
    """The URL of a PostgreSQL for all tests of this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    url = stack.enter_context(postgres())
    stack.callback(drop_schemas, url)
    return url


def drop_schemas(url: str) -> None:
    """Leave nothing in a server that goes on."""
    with psycopg.connect(url, autocommit=True) as connection:
        for (name,) in connection.execute("select nspname from pg_namespace where starts_with(nspname, %s)", (SCHEMA,)).fetchall():
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))


def empty_postgres_url(role: str = "") -> str:
    """The URL of an empty store, one for each role in a test. Its tables are made once and emptied: making them takes ten times as long."""
    schema = SCHEMA + role
    with psycopg.connect(shared_postgres(), autocommit=True) as connection:
        connection.execute("select set_config('test.schema', %s, false)", (schema,))
        row = connection.execute(TABLES).fetchone()
        if row is not None and row[0] is not None and "moved_" in row[0]:
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
        elif row is not None and row[0] is not None:
            connection.execute(
                sql.SQL("delete from {}.meta where name not in ('version', 'expanded', 'home') and name not like 'functions%'").format(
                    sql.Identifier(schema)
                )
            )
            truncate(connection, row[0])
            connection.execute(sql.SQL("alter sequence {}.numbers restart").format(sql.Identifier(schema)))
    return f"{shared_postgres()}?schema={quote(schema)}"


def truncate(connection: "psycopg.Connection[tuple[Any, ...]]", tables: str) -> None:
    """Empty the tables; what a test has left running may take them in another order, and PostgreSQL then ends one of both."""
    for _ in range(5):
        with suppress(psycopg.errors.DeadlockDetected):
            connection.execute(f"truncate {tables} restart identity")
            return
    raise AssertionError("the tables of the test before are still in use")


def own_postgres_url() -> str:
    """The URL of an empty store that goes by the server's clock, which a store that a test's clock was given to does not any more."""
    return empty_postgres_url(" on time")


@pytest.fixture(scope="session")
def postgres_server() -> str:
    return shared_postgres()


@pytest.fixture
def postgres_url() -> str:
    return empty_postgres_url()
