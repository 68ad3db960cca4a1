"""A job that is put on a connection of the caller's is there exactly if the caller's row is: every driver, every isolation level."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import ControlPlaneClient, Queue
from tests.connections import drivers
from tests.connections.drivers import NOBODY, TABLES, Shop, order
from tests.postgres import own_postgres_url

pytestmark = pytest.mark.anyio

LEVELS = ("read committed", "repeatable read", "serializable")

Open = Callable[[str, str], Awaitable[Shop]]


def threads(make: Callable[[str, str], Shop]) -> Open:
    async def open_shop(where: str, level: str) -> Shop:
        return make(where, level)

    return open_shop


SQLITE: dict[str, tuple[Open, tuple[str, ...]]] = {
    "sqlite3": (threads(drivers.SqliteShop), ("deferred", "immediate", "exclusive")),
    "sqlalchemy session": (threads(lambda path, _: drivers.sqlalchemy_on_sqlite(path, "session")), ("deferred",)),
    "sqlalchemy scoped session": (threads(lambda path, _: drivers.sqlalchemy_on_sqlite(path, "scoped")), ("deferred",)),
    "sqlalchemy connection": (threads(lambda path, _: drivers.sqlalchemy_on_sqlite(path, "connection")), ("deferred",)),
    "django": (threads(lambda path, _: drivers.DjangoShop(ENGINE="django.db.backends.sqlite3", NAME=path)), ("deferred",)),
}
POSTGRES: dict[str, Open] = {
    "psycopg": threads(drivers.PsycopgShop),
    "sqlalchemy session": threads(lambda url, level: drivers.sqlalchemy_on_psycopg(url, level, "session")),
    "sqlalchemy connection": threads(lambda url, level: drivers.sqlalchemy_on_psycopg(url, level, "connection")),
    "django": threads(drivers.django_on_psycopg),
    "psycopg async": drivers.AsyncPsycopgShop.open,
    "asyncpg": drivers.AsyncpgShop.open,
} | {
    f"sqlalchemy async {kind} {driver}": lambda url, level, driver=driver, kind=kind: drivers.AsyncSqlAlchemyShop.open(
        url, level, driver, kind
    )
    for driver in ("psycopg", "asyncpg")
    for kind in ("session", "connection")
}


class Database:
    """A store, and what is committed in it and beside it."""

    def __init__(self, client: ControlPlaneClient, rows: Callable[[], set[str]]) -> None:
        self.jobs: Queue[Any] = Queue.create("jobs", client=client)
        self.rows = rows

    def puts(self) -> set[str]:
        return set(self.jobs.get_many(10))


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    path = tmp_path / "app.db"

    def rows() -> set[str]:
        with closing(sqlite3.connect(path)) as connection:
            return {name for (name,) in connection.execute("select name from orders")}

    with ControlPlaneClient(f"sqlite:///{path}") as client:
        made = Database(client, rows)
        with closing(sqlite3.connect(path)) as connection:
            for statement in TABLES:
                connection.execute(statement)
        yield made


@pytest.fixture
def postgres_database(postgres_server: str) -> Iterator[Database]:
    def rows() -> set[str]:
        with psycopg.connect(postgres_server) as connection:
            return {name for (name,) in connection.execute("select name from orders").fetchall()}

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement)
    with ControlPlaneClient(own_postgres_url()) as client:
        yield Database(client, rows)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("drop table orders, customers")


def on_levels(driver: str, levels: Sequence[str]) -> list[Any]:
    """A driver on each isolation level; the first is for every run."""
    marks = [(), *((pytest.mark.verify,) for _ in levels[1:])]
    return [pytest.param((driver, level), id=f"{driver}-{level}", marks=mark) for level, mark in zip(levels, marks, strict=True)]


ON_SQLITE = [param for driver, (_, levels) in SQLITE.items() for param in on_levels(driver, levels)]
ON_POSTGRES = [param for driver in POSTGRES for param in on_levels(driver, LEVELS)]


class Scenarios:
    """What every driver has to show, in a store that the classes below give."""

    @pytest.fixture(autouse=True)
    def _django_runs_on_the_loop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The loop is the test's alone, so Django may block it."""
        monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

    @pytest.mark.parametrize("comes", ["job first", "row first"])
    @pytest.mark.parametrize("end", ["commit", "rollback"])
    async def test_a_job_is_there_exactly_if_its_row_is(self, database: Database, shop: Shop, end: str, comes: str) -> None:
        if comes == "job first":
            await shop.put(database.jobs, "paper")
            await order(shop, "paper")
        else:
            await order(shop, "paper")
            await shop.put(database.jobs, "paper")
        await (shop.commit() if end == "commit" else shop.rollback())
        assert database.rows() == database.puts() == ({"paper"} if end == "commit" else set())

    async def test_a_savepoint_that_is_rolled_back_takes_its_job_along(self, database: Database, shop: Shop) -> None:
        await order(shop, "paper")
        await shop.put(database.jobs, "paper")
        undo = await shop.savepoint()
        await order(shop, "glass")
        await shop.put(database.jobs, "glass")
        await undo()
        await shop.commit()
        assert database.rows() == database.puts() == {"paper"}

    async def test_a_commit_that_fails_leaves_neither(self, database: Database, shop: Shop) -> None:
        await order(shop, "paper", customer=NOBODY)
        await shop.put(database.jobs, "paper")
        with pytest.raises(Exception, match=r"(?i)foreign key"):
            await shop.commit()
        await shop.rollback()
        assert database.rows() == database.puts() == set()

    async def test_a_refused_put_leaves_the_row(self, database: Database, shop: Shop) -> None:
        database.jobs.configure(maxsize=1)
        await order(shop, "paper")
        await shop.put(database.jobs, "paper")
        with pytest.raises(Exception, match="full"):
            await shop.put(database.jobs, "glass")
        await shop.commit()
        assert database.rows() == database.puts() == {"paper"}

    async def test_control_without_connection_a_job_stays_without_its_row(self, database: Database, shop: Shop) -> None:
        database.jobs.put("paper")
        await order(shop, "paper")
        await shop.rollback()
        assert (database.rows(), database.puts()) == (set(), {"paper"})


class TestSqlite(Scenarios):
    @pytest.fixture
    def database(self, sqlite_database: Database) -> Database:
        return sqlite_database

    @pytest.fixture(params=ON_SQLITE)
    async def shop(self, request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> AsyncIterator[Shop]:
        opened = await SQLITE[request.param[0]][0](str(tmp_path / "app.db"), request.param[1])
        yield opened
        await opened.rollback()
        await opened.close()


class TestPostgres(Scenarios):
    @pytest.fixture
    def database(self, postgres_database: Database) -> Database:
        return postgres_database

    @pytest.fixture(params=ON_POSTGRES)
    async def shop(self, request: pytest.FixtureRequest, database: Database, postgres_server: str) -> AsyncIterator[Shop]:
        opened = await POSTGRES[request.param[0]](postgres_server, request.param[1])
        yield opened
        await opened.rollback()
        await opened.close()
