"""Connections to PostgreSQL alone."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.surfaces import sentinel
from tests.sentinel_databases import postgres_connections


@pytest.fixture
def get_conn(sentinel_database: str) -> Iterator[Callable[[], Any]]:
    with postgres_connections(sentinel_database) as connected:
        yield connected


@pytest.fixture
def other(get_conn: Callable[[], Any]) -> Any:
    """Somebody's connection, to a database that is ready."""
    connection = get_conn()
    sentinel.init_db(connection)
    return connection
