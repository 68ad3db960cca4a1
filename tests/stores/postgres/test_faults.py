"""What the PostgreSQL store does when something is wrong."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast import copy
from holdfast.commands import Change, Names, Write
from holdfast.commands.topics import queue_topic
from holdfast.connect import connect
from holdfast.errors import NotAllowed, SchemaTooNew, StoreError, StoreMoved, StoreUnavailable
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.stores.postgres import schema
from holdfast.stores.postgres.function_names import own
from holdfast.testing.conformance.asking import DICT, JOBS, acquire, claim, drain, ids, put, read, settle
from holdfast.testing.conformance.threads import Doing, all_asleep
from holdfast.testing.servers.postgres import PASSWORD, PostgresServer
from holdfast.testing.servers.program import free_port


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
        connection.execute(own("drop function faults.prune_some()").encode())
    count_up(store, 2)
    assert read(store) == {"n": 2}


def test_a_claim_outlives_the_connection_it_was_made_on(server: PostgresServer, store: Store) -> None:
    put(store, "a")
    held = claim(store)
    cut_all(server.url)
    assert settle(store, held) == [True]


def test_a_waiter_hears_of_what_was_put_while_its_connection_was_down(server: PostgresServer, store: Store) -> None:
    def claim_when_there() -> list[Message]:
        with store.mark(queue_topic(JOBS)) as mark:
            while not (found := claim(store)):
                store.wait(mark, 1_000_000.0)
            mark.used()
            return found

    waiter = Doing(claim_when_there)
    all_asleep(waiter)
    cut_all(server.url)
    other = connect(f"{server.url}?schema=faults")
    put(other, "a")
    other.close()
    assert ids(waiter.result("a waiter whose connection was cut")) == ["a"]


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


def test_an_unknown_option_of_the_url_is_named_beside_the_one_that_was_meant() -> None:
    with pytest.raises(
        ValueError, match=r"unknown option 'shema' in a PostgreSQL URL; did you mean 'schema'.* supported: schema, pool, and those of libpq"
    ):
        connect("postgresql://me:secret@host/db?shema=jobs")
    with pytest.raises(ValueError, match="unknown option 'x' in a PostgreSQL URL; supported"):
        connect("postgresql://me:secret@host/db?sslmode=disable&x=1")


def test_what_libpq_says_in_several_lines_are_sentences() -> None:
    with pytest.raises(StoreUnavailable, match=r"Connection refused\. Is the server running on that host .*\?$"):
        connect(f"postgresql://me:secret@127.0.0.1:{free_port()}/db")


def test_what_is_no_url_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="invalid PostgreSQL URL") as caught:
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


@pytest.mark.parametrize("ask", [claim, acquire, put, read], ids=lambda ask: ask.__name__)
def test_whoever_first_asks_after_a_move_is_told_of_it(server: PostgresServer, ask: Callable[[Store], object], tmp_path: Path) -> None:
    url = f"{server.url}?schema=source"
    early = connect(url)
    put(early, "a")
    early.close()
    late = connect(url)
    copy(url, f"sqlite:///{tmp_path}/target.db")
    with pytest.raises(StoreMoved):
        ask(late)
    late.close()
    with psycopg.connect(server.url) as connection:
        connection.execute("drop schema source cascade")


SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


@pytest.mark.parametrize(
    ("settings", "survives", "told"),
    [
        (SAFE, "power", ""),
        ({**SAFE, "synchronous_commit": "off"}, "process", ""),
        ({**SAFE, "fsync": "off"}, "process", ""),
        ({**SAFE, "full_page_writes": "off"}, "process", ""),
        (
            {**SAFE, "synchronous_commit": "remote_apply", "synchronous_standby_names": "*"},
            "power",
            "commits wait for standbys (remote_apply)",
        ),
    ],
)
def test_guarantees_are_those_of_the_servers_settings(
    server: PostgresServer, settings: dict[str, str], survives: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server.url) as connection:
        # Before a standby is waited for that does not exist.
        schema.migrate(connection, "holdfast")
    monkeypatch.setattr(server, "settings", server.settings | settings)
    server.restart()
    store = connect(server.url)
    assert store.guarantees.survives == survives
    assert told in store.guarantees.engine
    assert store.guarantees.settings.items() >= settings.items()
    store.close()
    monkeypatch.undo()
    server.restart()


def test_a_user_who_may_not_create_the_schema_is_told_so(server: PostgresServer) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("create role visitor login password 'v1s1t0r'")
    with pytest.raises(NotAllowed, match="permission denied") as caught:
        connect(server.url.replace(f"holdfast:{PASSWORD}", "visitor:v1s1t0r") + "?schema=another")
    assert "v1s1t0r" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_standby_is_not_taken_for_a_store(server: PostgresServer) -> None:
    """As one is: it takes no writes."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create role reader login superuser password 'r34d3r'")
        connection.execute("alter role reader set default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match="read-only") as caught:
        connect(server.url.replace(f"holdfast:{PASSWORD}", "reader:r34d3r"))
    assert "r34d3r" not in repr(caught.value)


def test_of_several_hosts_the_one_that_takes_writes_is_the_store(server: PostgresServer, store: Store) -> None:
    put(store, "a")
    with PostgresServer(settings={"default_transaction_read_only": "on"}) as standby:
        hosts = ",".join(f"127.0.0.1:{port}" for port in (free_port(), standby.port, server.port))
        several = connect(f"postgresql://holdfast:{PASSWORD}@{hosts}/postgres?schema=faults")
        server.restart()
        assert ids(claim(several)) == ["a"]
        assert PASSWORD not in several.url
        several.close()


def test_where_none_of_several_hosts_answers_all_are_named() -> None:
    dead = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1,127\.0\.0\.1") as caught:
        connect(f"postgresql://holdfast:s3cr3t@{dead}/postgres")
    assert "s3cr3t" not in repr(caught.value)


@pytest.mark.parametrize("name", ["{", "}", "{}", "100%", "%s", "%(a)s", '"quoted"', "o'clock", "a;b", "$1", "$$", "\\", "ä€\U0001f600"])
def test_any_name_is_a_queue_of_its_own(store: Store, name: str) -> None:
    put(store, "a", queue=name)
    put(store, "b", queue=name + "x")
    assert [settings.name for settings in store.execute(Names("queue")).settings] == sorted([name, name + "x"])
    assert drain(store, name) == ["a"]
