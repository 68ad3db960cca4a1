"""PostgreSQL and Redis servers whose data is replaced by a backup of it."""

import asyncio
import logging
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.commands import Changes
from holdfast.errors import Compacted
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.redis import RedisStore
from holdfast.testing.conformance.asking import put, write
from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer
from tests.stores.restoring.histories import QUEUE, check_reopened, check_restored, lose, newest, opened, work


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def empty(server: PostgresServer) -> PostgresServer:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("drop schema if exists holdfast cascade")
    return server


def restore_dump(server: PostgresServer, dump: Path) -> None:
    subprocess.run(
        [server.binaries / "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--output", "/dev/null", "--file", dump, server.url], check=True
    )


def test_a_dump_restored_into_the_same_server_hands_out_no_token_twice(
    empty: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dump = tmp_path / "dump.sql"

    def back_up() -> None:
        subprocess.run([empty.binaries / "pg_dump", "--no-owner", "--clean", "--file", dump, empty.url], check=True)

    lost = lose(lambda: PostgresStore(empty.url), back_up)
    restore_dump(empty, dump)
    check_restored(lambda: PostgresStore(empty.url), lost)
    assert ["restored" in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [True]


def test_a_data_folder_put_back_hands_out_no_token_twice(server: PostgresServer, empty: PostgresServer, tmp_path: Path) -> None:
    data = server.data

    def back_up() -> None:
        server.stop()
        copy(data, tmp_path / "data")
        server.start()

    lost = lose(lambda: PostgresStore(empty.url), back_up)
    server.stop()
    shutil.rmtree(data)
    copy(tmp_path / "data", data)
    server.start()
    check_restored(lambda: PostgresStore(empty.url), lost)


def copy(source: Path, target: Path) -> None:
    subprocess.run(["/bin/cp", "-a", source, target], check=True)


@pytest.mark.verify
def test_a_store_that_stays_open_notices_a_data_folder_that_was_put_back(
    server: PostgresServer, empty: PostgresServer, tmp_path: Path
) -> None:
    store = PostgresStore(empty.url)
    work(store, "a")
    seen = newest(store)
    server.stop()
    copy(server.data, tmp_path / "data")
    server.start()
    tokens = work(store, "b")
    lost = newest(store)
    server.stop()
    shutil.rmtree(server.data)
    copy(tmp_path / "data", server.data)
    server.start()
    assert min(work(store, "c")) > max(tokens)
    with pytest.raises(Compacted):
        store.execute(Changes(QUEUE, lost))
    assert len(store.execute(Changes(QUEUE, seen)).events) == 3
    store.close()


def test_opening_postgresql_again_disturbs_no_watch(empty: PostgresServer) -> None:
    check_reopened(lambda: PostgresStore(empty.url))


def test_a_restart_of_postgresql_disturbs_no_watch(server: PostgresServer, empty: PostgresServer) -> None:
    with opened(lambda: PostgresStore(empty.url)) as store:
        work(store, "a")
        index = newest(store)
        server.restart()
        put(store, "b")
        server.restart()
        put(store, "c")
        assert len(store.execute(Changes(QUEUE, index)).events) == 2


def test_a_restarted_redis_that_lost_its_latest_writes_is_noticed_by_watches() -> None:
    with RedisServer(settings={"save": "", "appendonly": "no"}) as server:
        with opened(lambda: RedisStore(server.url)) as store:
            work(store, "a", "b")
            seen = newest(store)
            store.connections.ask(("SAVE",))  # type: ignore[attr-defined]
            tokens = work(store, "c")
            lost = newest(store)
            server.restart()
            assert min(work(store, "d")) > max(tokens)
            with pytest.raises(Compacted):
                store.execute(Changes(QUEUE, lost))
            assert len(store.execute(Changes(QUEUE, seen)).events) == 3
            write(store, "k", "e")
        with opened(lambda: RedisStore(server.url)) as store, pytest.raises(Compacted):
            store.execute(Changes(QUEUE, lost))


def test_a_redis_file_put_back_hands_out_no_token_twice() -> None:
    with RedisServer(settings={"save": "", "appendonly": "no"}) as server:

        def back_up() -> None:
            with opened(lambda: RedisStore(server.url)) as store:
                store.connections.ask(("SAVE",))  # type: ignore[attr-defined]

        lost = lose(lambda: RedisStore(server.url), back_up)
        server.stop()
        server.start()
        check_restored(lambda: RedisStore(server.url), lost)


@pytest.mark.verify
def test_a_restarted_redis_is_noticed_by_tasks_too() -> None:
    asyncio.run(lose_writes_under_tasks())


async def lose_writes_under_tasks() -> None:
    with RedisServer(settings={"save": "", "appendonly": "no"}) as server:
        store = RedisStore(server.url)
        tasks = store.for_tasks()
        work(store, "a")
        store.connections.ask(("SAVE",))
        await tasks.execute(Changes(QUEUE))
        work(store, "b")
        lost = newest(store)
        server.restart()
        await tasks.execute(Changes(QUEUE))
        work(store, "c")
        with pytest.raises(Compacted):
            await tasks.execute(Changes(QUEUE, lost))
        await tasks.aclose()


def test_a_restart_of_redis_that_lost_nothing_disturbs_no_watch() -> None:
    with RedisServer() as server, opened(lambda: RedisStore(server.url)) as store:
        work(store, "a")
        index = newest(store)
        server.stop()
        server.start()
        put(store, "b")
        assert len(store.execute(Changes(QUEUE, index)).events) == 1
