"""Connections that a job cannot be put on are refused, and the message says what to do instead."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pymysql
import pytest
import sqlalchemy
from django.db.utils import ConnectionHandler
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from holdfast import ControlPlaneClient, Queue, StoreUnavailable
from tests.connections.drivers import sqlalchemy_url
from tests.django_site.setup import set_up
from tests.postgres import own_postgres_url

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _django_runs_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is the test's alone, so Django may block it."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Queue[Any]]:
    async with ControlPlaneClient(f"sqlite:///{tmp_path}/app.db") as client:
        yield Queue.create("jobs", client=client)


@pytest.fixture
async def pg_jobs() -> AsyncIterator[Queue[Any]]:
    async with ControlPlaneClient(own_postgres_url()) as client:
        yield Queue.create("jobs", client=client)


async def test_aiosqlite_is_refused_alone_and_below_sqlalchemy(jobs: Queue[Any], tmp_path: Path) -> None:
    async with aiosqlite.connect(tmp_path / "app.db") as connection:
        with pytest.raises(TypeError, match="give a sqlite3 connection, or use PostgreSQL with asyncpg or psycopg"):
            await jobs.aio.put("work", connection=connection)  # type: ignore[arg-type]
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db")
    async with AsyncSession(engine) as session:
        with pytest.raises(TypeError, match="give a sqlite3 connection, or use PostgreSQL with asyncpg or psycopg"):
            await jobs.aio.put("work", connection=session)
    await engine.dispose()


async def test_mysql_is_refused(jobs: Queue[Any]) -> None:
    connection = pymysql.connections.Connection(defer_connect=True)
    with pytest.raises(TypeError, match=r"no store in MySQL.*put the job after your commit, without connection="):
        jobs.put("work", connection=connection)


async def test_a_django_connection_to_mysql_is_refused_without_connecting(jobs: Queue[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    set_up()
    wrapper = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3"}})["default"]
    # Its own wrapper needs a driver that is built against MySQL's libraries.
    monkeypatch.setattr(wrapper, "vendor", "mysql")
    with pytest.raises(TypeError, match=r"Django connection 'default'.*put the job after your commit"):
        jobs.put("work", connection=wrapper)
    assert wrapper.connection is None


async def test_an_engine_is_no_connection(jobs: Queue[Any], tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/app.db")
    with pytest.raises(TypeError, match=r"Engine: give the Session or the Connection"):
        jobs.put("work", connection=engine)  # type: ignore[arg-type]


async def test_async_sessions_and_connections_belong_to_aio(pg_jobs: Queue[Any], postgres_server: str) -> None:
    engine = create_async_engine(sqlalchemy_url(postgres_server, "asyncpg"))
    async with AsyncSession(engine) as session:
        with pytest.raises(TypeError, match=r"AsyncSession here: .*use \.aio there"):
            pg_jobs.put("work", connection=session)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"asyncpg.* here: .*use \.aio there"):
            await session.run_sync(lambda sync: pg_jobs.put("work", connection=sync))
    await engine.dispose()


async def test_a_session_of_threads_is_refused_by_aio(pg_jobs: Queue[Any], postgres_server: str) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(postgres_server, "psycopg"))
    with Session(engine) as session, pytest.raises(TypeError, match=r"psycopg\.AsyncConnection here, not psycopg\.Connection"):
        await pg_jobs.aio.put("work", connection=session)
    engine.dispose()


async def test_another_file_is_refused(jobs: Queue[Any], tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/other.db")
    with Session(engine) as session, pytest.raises(ValueError, match=r"other\.db, but the store is .*app\.db"):
        jobs.put("work", connection=session)
    engine.dispose()


async def test_another_database_is_refused_on_asyncpg(pg_jobs: Queue[Any], postgres_server: str) -> None:
    connection = await asyncpg.connect(postgres_server, database="template1")
    transaction = connection.transaction()
    await transaction.start()
    with pytest.raises(ValueError, match="the database 'template1', but the store is in"):
        await pg_jobs.aio.put("work", connection=connection)
    assert await connection.fetchval("select 1") == 1, "the refusal must leave the caller's transaction as it was"
    await transaction.rollback()
    await connection.close()


async def test_an_idle_asyncpg_connection_commits_and_a_closed_one_is_unavailable(pg_jobs: Queue[Any], postgres_server: str) -> None:
    connection = await asyncpg.connect(postgres_server)
    await pg_jobs.aio.put({"text": 'quoted "\\" and \u00fc'}, connection=connection)
    assert pg_jobs.get() == {"text": 'quoted "\\" and \u00fc'}
    await connection.close()
    with pytest.raises(StoreUnavailable, match="nothing of this command was written"):
        await pg_jobs.aio.put("work", connection=connection)


async def test_the_codecs_of_an_asyncpg_connection_do_not_matter(pg_jobs: Queue[Any], postgres_server: str) -> None:
    connection = await asyncpg.connect(postgres_server)
    await connection.set_type_codec("jsonb", encoder=repr, decoder=repr, schema="pg_catalog")
    await pg_jobs.aio.put({"a": 1}, connection=connection)
    await connection.close()
    assert pg_jobs.get() == {"a": 1}


async def test_a_connection_that_commits_every_statement_does_so_below_sqlalchemy(pg_jobs: Queue[Any], postgres_server: str) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(postgres_server, "psycopg"), isolation_level="AUTOCOMMIT")
    with Session(engine) as session:
        pg_jobs.put("work", connection=session)
        session.rollback()
    engine.dispose()
    assert pg_jobs.get() == "work"


async def test_a_connection_that_commits_every_statement_does_so_on_asyncpg(pg_jobs: Queue[Any], postgres_server: str) -> None:
    engine = create_async_engine(sqlalchemy_url(postgres_server, "asyncpg"), isolation_level="AUTOCOMMIT")
    async with AsyncSession(engine) as session:
        await pg_jobs.aio.put("work", connection=session)
        await session.rollback()
    await engine.dispose()
    assert pg_jobs.get() == "work"


async def test_a_broken_transaction_of_django_is_refused(pg_jobs: Queue[Any], postgres_server: str) -> None:
    set_up()
    info = psycopg.conninfo.conninfo_to_dict(postgres_server)
    database = {"ENGINE": "django.db.backends.postgresql", "HOST": info["host"], "USER": info["user"], "NAME": info["dbname"]}
    wrapper = ConnectionHandler({"default": database})["default"]
    wrapper.in_atomic_block = wrapper.needs_rollback = True
    with pytest.raises(Exception, match="until the end of the 'atomic' block"):
        pg_jobs.put("work", connection=wrapper)
