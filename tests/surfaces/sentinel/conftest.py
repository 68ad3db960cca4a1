"""Connections for the tests of sentinel's surface."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sentinel_databases import own_database, postgres_connections, sqlite_connections


@pytest.fixture(scope="session")
def sentinel_database(postgres_server: str) -> Iterator[str]:
    with own_database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def get_conn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Makes connections to one database, for any thread; those left over are closed."""
    if request.param == "sqlite":
        with sqlite_connections(tmp_path) as connected:
            yield connected
    else:
        with postgres_connections(request.getfixturevalue("sentinel_database")) as connected:
            yield connected


@pytest.fixture
def conn(get_conn: Callable[[], Any]) -> Any:
    return get_conn()
