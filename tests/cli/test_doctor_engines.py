"""What `holdfast doctor` says about the engine of a store: its schema, a pooler, unused space, its limit and open transactions."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Any

import lmdb
import psycopg
import pytest
from msgspec import json
from psycopg import sql

from holdfast import ControlPlaneClient, Queue
from holdfast.cli.doctor import condition
from holdfast.connect import connect
from holdfast.stores.postgres.address import parse
from holdfast.testing.servers import holdfast as holdfast_server
from holdfast.testing.servers.redis import RedisServer
from tests.cli.running import holdfast
from tests.postgres import empty_postgres_url, own_postgres_url, shared_postgres
from tests.servers import own_redis_url
from tests.stores.postgres.pooling import Rotation, through
from tests.stores_by_name import url_of


def findings(url: str, about: str) -> list[dict[str, Any]]:
    ran = holdfast("doctor", "--json", f"--url={url}")
    assert ran.exit_code == 0, ran.stderr
    return [finding for finding in json.decode(ran.stdout) if finding["about"] == about]


def filled_and_emptied(url: str) -> None:
    """A store whose space was in use, and holds nothing now."""
    with ControlPlaneClient(url) as client:
        mail = Queue.create("mail", client=client)
        mail.put_many([token_hex(1_000) for _ in range(500)])  # PostgreSQL would compress a text that repeats
        mail.clear()


@pytest.fixture
def any_bloat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "BLOAT_BYTES", 500_000)
    monkeypatch.setattr(condition, "BLOAT_SHARE", 0.1)


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_unused_space_of_a_file_is_a_warning_that_says_how_to_give_it_back(scheme: str, tmp_path: Path, any_bloat: None) -> None:
    url = f"{scheme}:///{tmp_path}/store"
    connect(url).close()
    (schema,) = findings(url, "schema")
    assert (schema["level"], "this release" in schema["finding"], schema["remedy"]) == ("ok", True, "")
    assert [one["level"] for one in findings(url, "space")] == ["ok"]
    filled_and_emptied(url)
    (space,) = findings(url, "space")
    assert (space["level"], "hold nothing" in space["finding"], "stop the programs" in space["remedy"]) == ("warning", True, True)


def test_a_transaction_that_stays_open_and_the_rows_it_keeps_are_found_in_postgresql(
    any_bloat: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = own_postgres_url()
    connect(url).close()
    assert [one["level"] for one in findings(url, "space")] == ["ok"]
    with psycopg.connect(shared_postgres(), application_name="forgotten") as other:
        other.execute("set transaction isolation level repeatable read")
        pid = other.execute("select pg_backend_pid() from pg_class").fetchone()
        filled_and_emptied(url)
        deadline = time.monotonic() + 60
        # The server's statistics come late; no vacuum can lower them while the transaction is open.
        while [one["level"] for one in findings(url, "space")] != ["warning"] and time.monotonic() < deadline:
            time.sleep(0.1)
        (bloat,) = findings(url, "space")
        assert (bloat["level"], "autovacuum" in bloat["remedy"]) == ("warning", True)
        monkeypatch.setattr(condition, "OPEN_S", 0.0)
        told = [one for one in findings(url, "space") if "transaction open" in one["finding"]]
    assert pid is not None
    assert [f"server process {pid[0]} of user holdfast (forgotten)" in one["finding"] for one in told] == [True]
    assert f"pg_terminate_backend({pid[0]})" in told[0]["remedy"]


def test_functions_of_other_releases_are_told_with_the_command_that_removes_them() -> None:
    url = own_postgres_url()
    connect(url).close()
    (schema,) = findings(url, "schema")
    assert (schema["level"], schema["remedy"]) == ("ok", "")
    with psycopg.connect(shared_postgres(), autocommit=True) as session:
        name = sql.Identifier(parse(url).schema)
        session.execute(sql.SQL("insert into {}.meta values ('functions 0123456789', '0.0.1 then')").format(name))
        try:
            (schema,) = findings(url, "schema")
        finally:
            session.execute(sql.SQL("delete from {}.meta where name = 'functions 0123456789'").format(name))
    assert (schema["level"], "functions of 2 releases" in schema["finding"]) == ("notice", True)
    assert "holdfast prune-functions" in schema["remedy"]


def _in_sqlite(url: str, name: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
        file.execute("update holdfast_meta set value = '99' where name = ?", (name,))


def _in_postgres(url: str, name: str) -> None:
    with psycopg.connect(shared_postgres(), autocommit=True) as session:
        meta = sql.Identifier(parse(url).schema, "meta")
        session.execute(sql.SQL("update {} set value = '99' where name = {}").format(meta, sql.Literal(name)))


def _in_lmdb(url: str, name: str) -> None:
    with lmdb.open(url.removeprefix("lmdb:///"), max_dbs=64) as file, file.begin(write=True) as txn:
        txn.put(name.encode(), b"99", db=file.open_db(b"about", txn=txn))


def _in_redis(url: str, name: str) -> None:
    from redis import Redis

    with Redis.from_url(url.partition("?")[0]) as session:
        session.set(f"{url.partition('prefix=')[2]}:{name}", "99")


NOTES: dict[str, tuple[Callable[[str, str], None], str, str]] = {
    "sqlite": (_in_sqlite, "expanded", "version"),
    "postgres": (_in_postgres, "expanded", "version"),
    "lmdb": (_in_lmdb, "", "format"),
    "redis": (_in_redis, "", "format"),
}
"""What notes a newer form: one with additions, where the engine has such, and one that this release cannot read."""


@pytest.mark.parametrize("store", NOTES)
def test_a_form_that_a_newer_release_made_is_told_and_one_that_this_release_cannot_read_is_refused(store: str, tmp_path: Path) -> None:
    note, added, changed = NOTES[store]
    url = empty_postgres_url(" newer form") if store == "postgres" else url_of(store, tmp_path)
    connect(url).close()
    assert [one["level"] for one in findings(url, "schema")] == ["ok"], "control: it is of this release"
    if added:
        note(url, added)
        (schema,) = findings(url, "schema")
        assert (schema["level"], "upgrade the programs of this release" in schema["remedy"]) == ("notice", True)
    note(url, changed)
    ran = holdfast("doctor", "--json", f"--url={url}")
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert "99, but this version supports" in ran.stderr
    assert "upgrade Holdfast" in ran.stderr


def test_a_pooler_is_noticed_and_a_direct_connection_is_not() -> None:
    url = own_postgres_url()
    connect(url).close()
    assert findings(url, "pooler") == []
    with Rotation(shared_postgres()) as pooler:
        (found,) = findings(through(pooler.port, url), "pooler")
    assert (found["level"], "waits poll" in found["finding"]) == ("notice", True)


def test_a_redis_whose_memory_is_nearly_full_is_a_warning() -> None:
    url = own_redis_url()
    connect(url).close()
    assert {one["level"] for about in ("schema", "space") for one in findings(url, about)} == {"ok"}
    with RedisServer() as server:
        with ControlPlaneClient(server.url) as client:
            Queue.create("mail", client=client).put_many(["x" * 20_000] * 100)
            Queue.from_name("mail", client=client).pause()
        assert _set(server.url, "maxmemory", "3mb") == b"OK"
        ran = holdfast("doctor", "--json", f"--url={server.url}")
    (full,) = [one for one in json.decode(ran.stdout) if "may take are used" in one["finding"]]
    assert (full["level"], "maxmemory" in full["remedy"]) == ("warning", True)


def test_through_a_server_it_tells_the_release_and_where_to_ask_about_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast_server(f"sqlite:///{tmp_path}/s.db") as server:
        (schema,) = findings(server.url, "schema")
        (same,) = findings(server.url, "server")
        monkeypatch.setattr("holdfast.server.routes.about.__version__", "0.0.9")
        (other,) = findings(server.url, "server")
    assert (same["level"], other["level"], "Upgrade the older one" in other["remedy"]) == ("ok", "notice", True)
    assert other["finding"].startswith("the server is of release 0.0.9, and this is ")
    assert (schema["level"], "where the store can be opened" in schema["remedy"]) == ("notice", True)


def _set(url: str, name: str, value: str) -> Any:
    from redis import Redis

    with Redis.from_url(url) as session:
        return session.execute_command("CONFIG", "SET", name, value)
