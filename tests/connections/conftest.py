"""The stores with a table of orders beside them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import ControlPlaneClient
from tests.connections.drivers import TABLES
from tests.postgres import own_postgres_url


class Place:
    """A store with a table of orders beside it."""

    def __init__(self, client: ControlPlaneClient, where: str, rows: Any) -> None:
        self.client, self.where, self.rows = client, where, rows


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Any:
    path = str(tmp_path / "app.db")

    def rows() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return sorted(name for (name,) in connection.execute("select name from orders"))

    with ControlPlaneClient(f"sqlite:///{path}") as client:
        with closing(sqlite3.connect(path)) as connection:
            for table in TABLES:
                connection.execute(table)
        yield Place(client, path, rows)


@pytest.fixture
def on_postgres(postgres_server: str) -> Any:
    def rows() -> list[str]:
        with psycopg.connect(postgres_server) as connection:
            return sorted(name for (name,) in connection.execute("select name from orders"))

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for table in TABLES:
            connection.execute(table)
    with ControlPlaneClient(own_postgres_url()) as client:
        yield Place(client, postgres_server, rows)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("drop table orders, customers")


@pytest.fixture(autouse=True)
def _django_runs_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is the test's alone, so Django may block it."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
