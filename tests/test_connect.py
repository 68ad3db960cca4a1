"""From a URL to a store: which one, where, and what is said about a URL that names none."""

import logging
import os
import sqlite3
import sys
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Item, Put
from holdfast.connect import connect, connect_async
from holdfast.errors import MissingExtra, StoreError
from holdfast.stores import Store

PASSWORD = "hunter2"  # noqa: S105 - the very thing that must not be shown


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # `holdfast.connect` is also the name of a function.
    module = sys.modules["holdfast.connect"]
    monkeypatch.setattr(module, "_has_told", False)
    monkeypatch.setattr(module, "_named", {})
    module._class_of.cache_clear()


def put(store: Store, name: str) -> None:
    store.execute(Put("jobs", [Item(name, Raw(b"1"))]))


def waiting(store: Store) -> list[str]:
    return [message.id for message in store.execute(Browse("jobs")).messages]


# SQLite


def test_three_slashes_begin_a_relative_path(tmp_path: Path) -> None:
    connect("sqlite:///jobs.db").close()
    assert (tmp_path / "jobs.db").exists()


def test_four_slashes_begin_an_absolute_path(tmp_path: Path) -> None:
    connect(f"sqlite:///{tmp_path}/absolute.db").close()
    assert (tmp_path / "absolute.db").exists()


def test_a_relative_path_stays_where_it_was_when_the_process_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = connect("sqlite:///jobs.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store._writer.connection.close()  # type: ignore[attr-defined]  # as after a failed commit: the next one opens it again
    put(store, "a")
    store.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_path_may_be_percent_encoded(tmp_path: Path) -> None:
    connect("sqlite:///my%20jobs%3F%23.db").close()
    assert (tmp_path / "my jobs?#.db").exists()


@pytest.mark.parametrize("name", ["plain.db", "with space.db", "50%20.db", "what?.db", "a#b.db", "ä.db", "file:a?mode=memory"])
def test_a_stores_url_leads_to_the_same_store(tmp_path: Path, name: str) -> None:
    from holdfast.stores.sqlite.store import SqliteStore

    first = SqliteStore(tmp_path / name, durability="process")
    put(first, "a")
    second = connect(first.url)
    assert waiting(second) == ["a"]
    assert second.url == first.url
    assert second.guarantees.survives == "process"
    first.close()
    second.close()


@pytest.mark.parametrize(("url", "survives"), [("sqlite:///a", "power"), ("sqlite:///a?durability=process", "process")])
def test_durability_is_an_option_and_power_is_the_default(url: str, survives: str) -> None:
    store = connect(url)
    assert store.guarantees.survives == survives
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///jobs.db?durability=none",
        "sqlite:///jobs.db?durability=",
        "sqlite:///jobs.db?timeout=3",
        "memory://?durability=power",
        "sqlite:///",
        "sqlite://",
        "sqlite://jobs.db",
        "sqlite:///:memory:",
        "sqlite:///a%00b",
        "sqlite:///jobs.db#part",
        "",
        "jobs.db",
        "://",
        "mysql://host/db",
        "http://[",
    ],
)
def test_what_names_no_store_is_refused_and_makes_no_file(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite|memory"):
        connect(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://user:{PASSWORD}@host/db",
        f"mysql//user:{PASSWORD}@host/db",
        f"user:{PASSWORD}@host/db",
        f"sqlite://user:{PASSWORD}@host/jobs.db",
        f"sqlite:///jobs.db?password={PASSWORD}",
        f"http://user:{PASSWORD}@[",
        f"mysql://user:{PASSWORD}@ho\u2100st/db",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    with pytest.raises(ValueError, match=r"store|option|path") as caught:
        connect(url)
    shown = [str(caught.value), *(str(error) for error in (caught.value.__cause__, caught.value.__context__) if error)]
    assert PASSWORD not in " ".join(shown)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"folder .*nowhere.* does not exist"):
        connect("sqlite:///nowhere/jobs.db")


# A connection of the caller's own


def test_a_sqlite3_connection_is_a_store(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "app.db")
    store = connect(connection)
    put(store, "a")
    assert waiting(store) == ["a"]
    store.close()
    assert connection.execute("select count(*) from holdfast_messages").fetchone() == (1,)
    connection.close()


# Memory


def test_memory_is_a_new_store_each_time() -> None:
    one, two = connect("memory://"), connect("memory://")
    put(one, "a")
    assert waiting(two) == []


def test_memory_with_a_name_is_one_store_a_process() -> None:
    put(connect("memory://shared"), "a")
    assert waiting(connect("memory://shared")) == ["a"]
    assert waiting(connect("memory://other")) == []


# Without a URL


def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///chosen.db")
    connect().close()
    assert (tmp_path / "chosen.db").exists()


def test_memory_in_the_environment_is_one_store_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "memory://")
    put(connect(), "a")
    assert waiting(connect()) == ["a"]
    assert waiting(connect("memory://")) == []


def test_a_url_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///chosen.db")
    connect("memory://").close()
    assert not (tmp_path / "chosen.db").exists()


def test_else_it_is_a_file_in_the_users_data_folder_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    first = connect()
    put(first, "a")
    second = connect()
    assert waiting(second) == ["a"]
    assert first.url.endswith("/holdfast/holdfast.sqlite3?durability=power")
    said = [record for record in caplog.records if record.name == "holdfast"]
    assert len(said) == 1
    assert said[0].levelno == logging.INFO
    assert "holdfast.sqlite3" in said[0].getMessage()
    first.close()
    second.close()


def test_the_data_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "50%20 of #1?"))
    store = connect()
    put(store, "a")
    store.close()
    assert len(list(tmp_path.rglob("holdfast.sqlite3"))) == 1
    assert not (tmp_path / "50 ").exists()


# Extras and tasks


def test_a_missing_extra_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "lmdb" or name.startswith("holdfast.stores.lmdb")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'holdfast\[lmdb\]'"):
        connect("lmdb:///jobs")
    assert not os.path.exists("jobs")  # noqa: PTH110 - relative to where the process is


@pytest.mark.anyio
async def test_tasks_have_the_same_urls() -> None:
    store = connect_async("sqlite:///jobs.db")
    await store.execute(Put("jobs", [Item("a", Raw(b"1"))]))
    assert [message.id for message in (await store.execute(Browse("jobs"))).messages] == ["a"]
    await store.aclose()
