"""A PostgreSQL for the tests of one process, and an empty store in it for each of them."""

import os
from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One server for all tests of this process."""
    with postgres() as url:
        yield url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(SCHEMA)))


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """An empty store. Its tables are made once and emptied: making them costs ten times as much."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("select set_config('test.schema', %s, false)", (SCHEMA,))
        row = connection.execute(TABLES).fetchone()
        if row is not None and row[0] is not None and "moved_" in row[0]:
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(SCHEMA)))
        elif row is not None and row[0] is not None:
            connection.execute(sql.SQL("delete from {}.meta where name <> 'version'").format(sql.Identifier(SCHEMA)))
            connection.execute(f"truncate {row[0]} restart identity")
            connection.execute(sql.SQL("alter sequence {}.numbers restart").format(sql.Identifier(SCHEMA)))
    return f"{postgres_server}?schema={quote(SCHEMA)}"
