"""What the PostgreSQL store does when something is wrong."""

import multiprocessing
import os
import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.commands import Change, Write
from holdfast.connect import connect
from holdfast.errors import NotAllowed, SchemaTooNew, StoreError, StoreUnavailable
from holdfast.stores import Store
from holdfast.testing.conformance.asking import DICT, claim, ids, put, read, settle, stats
from holdfast.testing.servers.postgres import PASSWORD, PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that may be restarted."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def store(server: PostgresServer) -> Iterator[Store]:
    store = connect(f"{server.url}?schema=faults")
    yield store
    store.close()
    with psycopg.connect(server.url) as connection:
        connection.execute("drop schema faults cascade")


def count_up(store: Store, times: int) -> None:
    for _ in range(times):
        store.execute(Write(DICT, [Change("n", do="increment", by=1)]))


def cut_all(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast'")


def test_a_restart_of_the_server_is_ridden_out_and_every_command_applied_once(server: PostgresServer, store: Store) -> None:
    workers = [threading.Thread(target=count_up, args=(store, 100)) for _ in range(4)]
    for worker in workers:
        worker.start()
    server.restart()
    for worker in workers:
        worker.join()
    assert read(store) == {"n": 400}


def test_connections_cut_several_times_lose_nothing_and_repeat_nothing(server: PostgresServer, store: Store) -> None:
    workers = [threading.Thread(target=count_up, args=(store, 50)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(5):
        cut_all(server.url)
        workers[0].join(0.2)
    for worker in workers:
        worker.join()
    assert read(store) == {"n": 200}


def test_a_pruning_that_fails_is_not_the_failure_of_the_command_before_it(
    server: PostgresServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "is_time_to_prune", lambda: True)
    with psycopg.connect(server.url) as connection:
        connection.execute("drop function faults.prune_some")
    count_up(store, 2)
    assert read(store) == {"n": 2}


def test_a_claim_outlives_the_connection_it_was_made_on(server: PostgresServer, store: Store) -> None:
    put(store, "a")
    held = claim(store)
    cut_all(server.url)
    assert settle(store, held) == [True]


def test_a_forked_child_has_connections_of_its_own(store: Store) -> None:
    put(store, "a")
    child = multiprocessing.get_context("fork").Process(target=lambda: (put(store, "b"), os._exit(0)))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert ids(claim(store, 2)) == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"password": "wrong-secret"}, NotAllowed),
        ({"dbname": "nowhere"}, StoreError),
        ({"port": "1"}, StoreUnavailable),
    ],
)
def test_a_store_that_cannot_be_reached_says_why_and_never_the_password(
    server: PostgresServer, change: dict[str, str], error: type[Exception]
) -> None:
    parts = {**conninfo_to_dict(server.url), **change}
    url = f"postgresql://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/{parts['dbname']}"
    with pytest.raises(error) as caught:
        connect(url)
    assert PASSWORD not in repr(caught.value)
    assert "wrong-secret" not in repr(caught.value)


def test_what_is_no_url_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="no URL of PostgreSQL") as caught:
        connect("postgresql://me:se%zzcret@host/db?sslmode=%")
    assert "cret" not in str(caught.value)


def test_the_stores_url_has_no_password(store: Store) -> None:
    assert PASSWORD not in store.url
    assert "holdfast@127.0.0.1" in store.url


def test_a_schema_of_a_newer_version_is_refused(server: PostgresServer, store: Store) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("update faults.meta set value = '999' where name = 'version'")
    with pytest.raises(SchemaTooNew):
        connect(f"{server.url}?schema=faults")


def test_a_user_without_the_right_is_told_so(server: PostgresServer, store: Store) -> None:
    put(store, "a")
    with psycopg.connect(server.url) as connection:
        connection.execute("drop role if exists guest")
        connection.execute("create role guest login password 'guest'")
    parts = conninfo_to_dict(server.url)
    with pytest.raises(NotAllowed):
        connect(f"postgresql://guest:guest@{parts['host']}:{parts['port']}/{parts['dbname']}?schema=faults")


def test_what_the_server_does_not_fsync_does_not_survive_a_loss_of_power(store: Store) -> None:
    assert store.guarantees.survives == "process"
    assert store.guarantees.engine.startswith("PostgreSQL")
    assert stats(store).total == 0
