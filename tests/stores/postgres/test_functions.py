"""Each release calls its own functions in a schema, beside those of others."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.commands import Length
from holdfast.connect import connect
from holdfast.errors import NotAllowed, StoreError
from holdfast.stores import Store
from holdfast.stores.postgres import function_names, schema
from holdfast.stores.postgres.function_names import digest, names, own, texts_in
from holdfast.stores.postgres.placeholders import FILLED_IN, PLACEHOLDERS, filled_in
from holdfast.testing.conformance.asking import put, write
from tests.cli.running import holdfast

Connection = psycopg.Connection[Any]

INSTALLED = "select distinct right(proname, 12) from pg_proc where pronamespace = 'upgraded'::regnamespace and proname ~ '^fast_write_[^i]'"
PRUNED = "functions of this release were pruned, open the store again"


@pytest.fixture
def url(postgres_server: str) -> str:
    return f"{postgres_server}?schema=upgraded"


@pytest.fixture
def connection(postgres_server: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection
        connection.execute("drop schema if exists upgraded cascade")


@pytest.fixture
def other_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Go on as a release that changed a single function: every dict has 41 entries more."""
    texts = texts_in("functions")
    changed = [text.replace("select count(*)::text\n    from entries", "select (41 + count(*))::text\n    from entries") for text in texts]

    def forget() -> None:
        for found_once in (function_names.function_texts, digest, names, function_names._call):
            found_once.cache_clear()

    def become_other() -> None:
        assert changed != texts
        others = {"functions": changed, "schema": texts_in("schema")}
        for module in (function_names, schema):
            monkeypatch.setattr(module, "texts_in", others.__getitem__)
        forget()

    yield become_other
    monkeypatch.undo()
    forget()


def installed(connection: Connection) -> int:
    """Of how many releases functions are there."""
    return len(connection.execute(INSTALLED).fetchall())


def length(store: Store) -> int:
    return store.execute(Length("d"))


def test_a_release_that_changes_one_function_calls_its_own_and_an_older_process_goes_on_with_its(
    url: str, connection: Connection, other_release: Callable[[], None]
) -> None:
    with closing(connect(url)) as before:
        write(before, "k", 1, dict="d")
        assert length(before) == 1
        other_release()
        with closing(connect(url)) as after:
            assert (length(before), length(after)) == (1, 42)
            write(before, "l", 1, dict="d")
            write(after, "m", 1, dict="d")
            assert (length(before), length(after)) == (3, 44)
    assert installed(connection) == 2


def test_opening_a_store_again_installs_nothing(url: str, connection: Connection) -> None:
    for _ in range(2):
        connect(url).close()
        made = connection.execute(
            "select max(oid), count(*) from pg_proc where pronamespace = 'upgraded'::regnamespace and prorettype <> 'trigger'::regtype"
        ).fetchone()
        assert made is not None
        assert made[1] == len(names())
        assert (
            made
            == connection.execute(
                "select max(oid), count(*) from pg_proc where pronamespace = 'upgraded'::regnamespace and proname like %s",
                (f"%_{digest()}",),
            ).fetchone()
        )


def test_many_that_open_a_store_at_once_install_the_functions_once(url: str, connection: Connection) -> None:
    with ThreadPoolExecutor(8) as threads:
        for store in threads.map(connect, [url] * 8):
            put(store, "a")
            store.close()
    assert installed(connection) == 1


def test_functions_of_other_releases_are_removed_when_asked_and_installed_again_by_who_needs_them(
    url: str, connection: Connection, other_release: Callable[[], None]
) -> None:
    with closing(connect(url)) as before:
        write(before, "k", 1, dict="d")
        connection.execute("create function upgraded.put(text) returns void language sql as 'select'")
        connection.execute("create function upgraded.yours() returns void language sql as 'select'")
        other_release()
        done = holdfast("prune-functions", url, "--json")
        assert (done.exit_code, done.stderr) == (0, "")
        assert f'"removed":{len(names()) + 1}' in done.stdout
        assert installed(connection) == 1
        assert connection.execute("select to_regproc('upgraded.put') is null, to_regproc('upgraded.yours') is null").fetchone() == (
            True,
            False,
        )
        with pytest.raises(StoreError, match=PRUNED):
            length(before)
        with closing(connect(url)) as after:
            assert length(after) == 42


def test_a_schema_of_any_name_can_be_pruned(postgres_url: str) -> None:
    connect(postgres_url).close()
    done = holdfast("prune-functions", postgres_url, "--json")
    assert (done.exit_code, done.stderr, '"removed":0' in done.stdout) == (0, "", True)
    with closing(connect(postgres_url)) as store:
        put(store, "a")


def test_only_postgresql_has_functions_to_prune(tmp_path: Path) -> None:
    connect(f"sqlite:///{tmp_path}/jobs.db").close()
    done = holdfast("prune-functions", f"sqlite:///{tmp_path}/jobs.db")
    assert done.exit_code == 2
    assert "only PostgreSQL keeps functions" in done.stderr


def test_who_may_not_create_functions_is_told_what_to_do(url: str, connection: Connection, other_release: Callable[[], None]) -> None:
    connect(url).close()
    connection.execute("drop role if exists upgraded_user")
    connection.execute("create role upgraded_user login password 'x'")
    connection.execute("grant usage on schema upgraded to upgraded_user")
    connection.execute("grant all on all tables in schema upgraded to upgraded_user")
    connection.execute("grant all on all sequences in schema upgraded to upgraded_user")
    try:
        head, _, tail = url.partition("@")
        theirs = f"{head.partition('//')[0]}//upgraded_user:x@{tail}"
        with closing(connect(theirs)) as store:
            write(store, "k", 1, dict="d")
        other_release()
        with pytest.raises(NotAllowed, match="'upgraded_user' may not create them: open the store once as a user who may"):
            connect(theirs)
        connect(url).close()
        with closing(connect(theirs)) as store:
            assert length(store) == 42
    finally:
        connection.execute("drop owned by upgraded_user")
        connection.execute("drop role upgraded_user")


def test_no_function_has_a_name_that_postgresql_or_a_keyword_has(connection: Connection) -> None:
    """Else `own` would rename calls that are not ours."""
    taken = "select proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace and proname = any (%s)"
    assert connection.execute(taken, (list(names()),)).fetchall() == []
    reserved = "select word from pg_get_keywords() where catcode in ('R', 'C') and word = any (%s)"
    assert connection.execute(reserved, (list(names()),)).fetchall() == []
    assert own("select {}.told(told, untold(1))") == f"select {{}}.told_{digest()}(told, untold(1))"


def test_every_placeholder_of_the_files_is_filled_in_and_none_is_left_over() -> None:
    named = {name for name, _ in FILLED_IN.findall("".join(texts_in("functions")))}
    assert named == PLACEHOLDERS.keys() - {"fast_settings"} | {"fast"}
    with pytest.raises(KeyError):
        filled_in("select {unknown}")


def test_a_fast_function_is_installed_with_its_settings_and_for_sessions_that_have_them() -> None:
    text = filled_in("create or replace function f(a text) returns text\nlanguage sql {fast} as $$\n  select a\n$$;\n")
    assert re.findall(r"function (\w+)\(", text) == ["f", "f_in_session"]
    assert re.findall(r"language sql(.*) as", text) == [f" {PLACEHOLDERS['fast_settings']}", ""]


def test_a_schema_that_a_newer_release_only_added_to_can_be_used(url: str, connection: Connection) -> None:
    connect(url).close()
    tables = [name for (name,) in connection.execute("select tablename from pg_tables where schemaname = 'upgraded'").fetchall()]
    for table in tables:
        connection.execute(f"alter table upgraded.{table} add column later text default 'added'".encode())
    connection.execute("update upgraded.meta set value = %s where name = 'expanded'", (str(schema.newest() + 1),))
    with closing(connect(url)) as store:
        put(store, "a")
        write(store, "k", 1, dict="d")
        assert length(store) == 1
    kept = connection.execute("select value from upgraded.meta where name = 'expanded'").fetchone()
    assert kept == (str(schema.newest() + 1),)
