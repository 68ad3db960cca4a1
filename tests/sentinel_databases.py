"""Databases with which sentinel's surface is tested, and connections to them that are closed in the end."""

import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from holdfast.ids import new_id
from holdfast.surfaces import sentinel

EVERYTHING = """
select string_agg(format('%I.%I', schemaname, tablename), ', ')
from pg_tables
where schemaname in ('holdfast', 'public') and tablename <> 'meta'
"""


@contextmanager
def sqlite_connections(folder: Path) -> Iterator[Callable[[], Any]]:
    """Makes connections to one file, for any thread."""
    with closing_all(lambda: sqlite3.connect(folder / "app.db", check_same_thread=False)) as connected:
        yield connected


@contextmanager
def postgres_connections(url: str) -> Iterator[Callable[[], Any]]:
    """Makes connections to one empty database, as psycopg makes them if it is told nothing: without autocommit."""
    with psycopg.connect(url, autocommit=True) as connection:
        (tables,) = connection.execute(EVERYTHING).fetchone() or (None,)
        if tables is not None:
            connection.execute(f"truncate {tables}")
    with closing_all(lambda: psycopg.connect(url)) as connected:
        yield connected


@contextmanager
def closing_all(make: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Close what was made here; what a heartbeat made, once it has ended: SQLite crashes if a connection is closed under a thread."""
    made: list[tuple[Any, threading.Thread]] = []

    def connected() -> Any:
        made.append((make(), threading.current_thread()))
        return made[-1][0]

    yield connected
    for connection, maker in made:
        until(lambda maker=maker: maker.name != "holdfast-keepalive" or not maker.is_alive())  # type: ignore[misc]
        connection.close()


@contextmanager
def own_database(server: str) -> Iterator[str]:
    """The URL of a database for oneself: on a caller's connection the schema has one name for all."""
    name = f"sentinel_{new_id()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield psycopg.conninfo.make_conninfo(server, dbname=name)
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    pause, looks = threading.Event(), 0
    while not condition():
        looks += 1
        assert looks < 6_000, "it did not happen"
        pause.wait(0.01)


def until_renewed(other: Any, key: str) -> None:
    """Wait until somebody else's lease ends later than it would have."""
    looks = [math.inf]

    def ends_later() -> bool:
        held = sentinel.acquire(other, key)
        assert not held.acquired
        looks.append(held.free_in_ms or 0.0)
        return looks[-1] > looks[-2]

    until(ends_later)
