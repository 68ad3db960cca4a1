"""Small shops that insert orders, one for each driver and toolkit whose connections calls take; all of them with the same methods."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import asyncpg
import psycopg
import sqlalchemy
from django.db.utils import ConnectionHandler
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from holdfast import Queue
from tests.django_site.setup import set_up

TABLES = (
    "create table if not exists customers (id integer primary key)",
    "create table if not exists orders (name text primary key, customer integer references customers (id) deferrable initially deferred)",
)
"""An order of a customer who does not exist is noticed at the commit."""

NOBODY = 99


class Shop(Protocol):
    """An application with a connection of its own."""

    given: Any
    """What it gives as connection=."""

    async def put(self, jobs: Queue[Any], name: str) -> None: ...
    async def execute(self, statement: str) -> None: ...
    async def savepoint(self) -> Callable[[], Awaitable[None]]:
        """Begin one; what is returned rolls back to it."""
        ...

    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def close(self) -> None: ...


async def order(shop: Shop, name: str, customer: int | None = None) -> None:
    await shop.execute(f"insert into orders values ('{name}', {'null' if customer is None else customer})")  # noqa: S608 - literals of the tests


class ThreadsShop:
    """What the shops of threads have in common: a connection with the methods of the DB API."""

    given: Any

    async def put(self, jobs: Queue[Any], name: str) -> None:
        jobs.put(name, connection=self.given)

    async def execute(self, statement: str) -> None:
        self.given.execute(statement)

    async def savepoint(self) -> Callable[[], Awaitable[None]]:
        await self.execute("savepoint shop")
        return lambda: self.execute("rollback to savepoint shop")

    async def commit(self) -> None:
        self.given.commit()

    async def rollback(self) -> None:
        self.given.rollback()

    async def close(self) -> None:
        self.given.close()


class SqliteShop(ThreadsShop):
    def __init__(self, path: str, level: str) -> None:
        self.given = sqlite3.connect(path, isolation_level=level)  # type: ignore[call-overload]
        self.given.execute("pragma foreign_keys = on")


class PsycopgShop(ThreadsShop):
    def __init__(self, url: str, level: str) -> None:
        self.given = psycopg.connect(url)
        self.given.isolation_level = psycopg.IsolationLevel[level.replace(" ", "_").upper()]


class SqlAlchemyShop(ThreadsShop):
    """With a Session, a scoped Session or a Connection."""

    def __init__(self, engine: sqlalchemy.Engine, kind: str) -> None:
        self.engine = engine
        makers: dict[str, Callable[[], Any]] = {
            "session": lambda: Session(engine),
            "scoped": lambda: scoped_session(sessionmaker(engine)),
            "connection": engine.connect,
        }
        self._open = makers[kind]
        self.given = self._open()

    async def rollback(self) -> None:
        """As leaving the block of a Connection does; after a commit that failed, its own `rollback` does nothing."""
        self.given.rollback()
        self.given.close()
        self.given = self._open()

    async def execute(self, statement: str) -> None:
        self.given.execute(sqlalchemy.text(statement))

    async def savepoint(self) -> Callable[[], Awaitable[None]]:
        nested = self.given.begin_nested()

        async def undo() -> None:
            nested.rollback()

        return undo

    async def close(self) -> None:
        self.given.close()
        self.engine.dispose()


def sqlalchemy_on_sqlite(path: str, kind: str) -> SqlAlchemyShop:
    """As its manual says for savepoints: SQLAlchemy begins, not the driver."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("pragma foreign_keys = on")

    @event.listens_for(engine, "begin")
    def begun(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("begin")

    return SqlAlchemyShop(engine, kind)


def sqlalchemy_on_psycopg(url: str, level: str, kind: str) -> SqlAlchemyShop:
    return SqlAlchemyShop(sqlalchemy.create_engine(sqlalchemy_url(url, "psycopg"), isolation_level=level.upper()), kind)


class DjangoShop(ThreadsShop):
    """With a connection of Django, in a transaction as `atomic` begins one."""

    def __init__(self, **database: Any) -> None:
        set_up()
        self.handler = ConnectionHandler({"default": database})
        self.given = self.handler["default"]
        self._begin()

    def _begin(self) -> None:
        self.given.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)

    async def execute(self, statement: str) -> None:
        with self.given.cursor() as cursor:
            cursor.execute(statement)


def django_on_psycopg(url: str, level: str) -> DjangoShop:
    info = psycopg.conninfo.conninfo_to_dict(url)
    where = {
        "HOST": info["host"],
        "USER": info["user"],
        "NAME": info["dbname"],
        "PORT": info.get("port", ""),
        "PASSWORD": info.get("password", ""),
    }
    options = {"isolation_level": psycopg.IsolationLevel[level.replace(" ", "_").upper()]}
    return DjangoShop(ENGINE="django.db.backends.postgresql", OPTIONS=options, **where)


class TasksShop(ThreadsShop):
    """What the shops of tasks have in common."""

    async def put(self, jobs: Queue[Any], name: str) -> None:
        await jobs.aio.put(name, connection=self.given)

    async def execute(self, statement: str) -> None:
        await self.given.execute(statement)

    async def commit(self) -> None:
        await self.given.commit()

    async def rollback(self) -> None:
        await self.given.rollback()

    async def close(self) -> None:
        await self.given.close()


class AsyncPsycopgShop(TasksShop):
    def __init__(self, connection: "psycopg.AsyncConnection[Any]") -> None:
        self.given = connection

    @classmethod
    async def open(cls, url: str, level: str) -> "AsyncPsycopgShop":
        connection = await psycopg.AsyncConnection.connect(url)
        await connection.set_isolation_level(psycopg.IsolationLevel[level.replace(" ", "_").upper()])
        return cls(connection)


class AsyncpgShop(TasksShop):
    """With a connection of a pool, as applications have them."""

    def __init__(self, pool: Any, connection: Any, level: str) -> None:
        self.pool = pool
        self.given = connection
        self.transaction = connection.transaction(isolation=level.replace(" ", "_"))

    @classmethod
    async def open(cls, url: str, level: str) -> "AsyncpgShop":
        pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        shop = cls(pool, await pool.acquire(), level)
        await shop.transaction.start()
        return shop

    async def commit(self) -> None:
        await self.transaction.commit()

    async def rollback(self) -> None:
        if self.given.is_in_transaction():
            await self.transaction.rollback()

    async def close(self) -> None:
        await self.pool.release(self.given)
        await self.pool.close()


class AsyncSqlAlchemyShop(TasksShop):
    def __init__(self, engine: AsyncEngine, given: AsyncSession | AsyncConnection) -> None:
        self.engine = engine
        self.given = given

    @classmethod
    async def open(cls, url: str, level: str, driver: str, kind: str) -> "AsyncSqlAlchemyShop":
        engine = create_async_engine(sqlalchemy_url(url, driver), isolation_level=level.upper())
        return cls(engine, AsyncSession(engine) if kind == "session" else await engine.connect())

    async def execute(self, statement: str) -> None:
        await self.given.execute(sqlalchemy.text(statement))

    async def savepoint(self) -> Callable[[], Awaitable[None]]:
        nested = await self.given.begin_nested()
        return nested.rollback  # type: ignore[no-any-return]

    async def close(self) -> None:
        await self.given.close()
        await self.engine.dispose()


def sqlalchemy_url(url: str, driver: str) -> str:
    """SQLAlchemy's URL of a database; libpq's has the folder of a socket in its query."""
    info = psycopg.conninfo.conninfo_to_dict(url)
    made = sqlalchemy.URL.create(
        f"postgresql+{driver}",
        username=str(info["user"]),
        password=str(info["password"]) if info.get("password") else None,
        database=str(info["dbname"]),
        query={"host": str(info["host"])} | ({"port": str(info["port"])} if "port" in info else {}),
    )
    return made.render_as_string(hide_password=False)
