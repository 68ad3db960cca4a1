"""Where localqueue's stores keep things, and what they refuse."""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import lmdb
import pytest

from holdfast.client import ControlPlaneClient, client_for
from holdfast.errors import Closed, StoreError, StoreUnavailable
from holdfast.surfaces.localqueue import (
    LMDBIdempotencyStore,
    LMDBQueueStore,
    MemoryQueueStore,
    PersistentQueue,
    QueueStoreLockedError,
    SQLiteIdempotencyStore,
    SQLiteQueueStore,
    URLQueueStore,
)
from holdfast.surfaces.localqueue.results import LMDBResultStore, SQLiteResultStore
from holdfast.surfaces.localqueue.retry import LMDBAttemptStore, SQLiteAttemptStore


def test_nothing_is_opened_before_the_first_call(tmp_path: Path) -> None:
    queue = PersistentQueue[int]("jobs", store_path=tmp_path / "new" / "jobs.sqlite3")
    assert not (tmp_path / "new").exists()
    queue.put(1)
    assert (tmp_path / "new" / "jobs.sqlite3").is_file()
    queue.store.close()


STORES: list[Any] = [
    SQLiteQueueStore,
    LMDBQueueStore,
    SQLiteAttemptStore,
    LMDBAttemptStore,
    SQLiteIdempotencyStore,
    LMDBIdempotencyStore,
    SQLiteResultStore,
    LMDBResultStore,
]


@pytest.mark.parametrize("kind", STORES)
def test_a_constructor_makes_the_folders_above_its_path(kind: Any, tmp_path: Path) -> None:
    kind(tmp_path / "new" / "folders" / "jobs")
    assert (tmp_path / "new" / "folders").is_dir()


@pytest.mark.parametrize("kind", STORES)
def test_a_constructor_refuses_a_path_that_cannot_be_its_store(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another path"):
        kind(tmp_path / ("file" if kind.__name__.startswith("LMDB") else "folder"))


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind.__name__.startswith("LMDB")])
def test_a_constructor_says_that_lmdb_is_missing(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(RuntimeError, match=r"holdfast\[lmdb\]"):
        kind(tmp_path / "jobs")


@pytest.mark.parametrize("kind", [SQLiteQueueStore, LMDBQueueStore])
def test_a_file_is_shared_by_all_who_open_it(kind: Any, tmp_path: Path) -> None:
    one, other = kind(tmp_path / "jobs"), kind(str(tmp_path / "jobs"))
    PersistentQueue[int]("jobs", store=one).put(1)
    one.close()
    assert PersistentQueue[int]("jobs", store=other).get() == 1
    with pytest.raises(Closed):
        PersistentQueue[int]("jobs", store=one).get_nowait()
    other.close()


def test_stores_in_memory_are_apart() -> None:
    PersistentQueue[int]("jobs", store=MemoryQueueStore()).put(1)
    assert PersistentQueue[int]("jobs", store=MemoryQueueStore()).empty()


def test_a_queue_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "memory://localqueue-by-default")
    PersistentQueue[int]("jobs").put(1)
    assert PersistentQueue[int]("jobs", store="memory://localqueue-by-default").get() == 1
    client = client_for("memory://localqueue-by-default")
    assert PersistentQueue[int]("jobs", store=client).stats().inflight == 1
    client.close()


def test_closing_a_store_that_others_share_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "memory://localqueue-shared")
    URLQueueStore().close()
    queue = PersistentQueue[int]("jobs")
    queue.put(1)
    queue.store.close()
    assert queue.get() == 1
    client_for("memory://localqueue-shared").close()


def test_a_store_is_named_by_its_url_or_a_client() -> None:
    with pytest.raises(TypeError, match="URL"):
        URLQueueStore(3)  # type: ignore[arg-type] # that is the test


@pytest.mark.parametrize(
    ("table", "open_store"),
    [
        ("queue_messages", lambda path: PersistentQueue[int]("jobs", store_path=path).put(1)),
        ("queue_messages", SQLiteQueueStore),
        ("retry_records", SQLiteAttemptStore),
        ("idempotency_records", SQLiteIdempotencyStore),
        ("queue_results", SQLiteResultStore),
    ],
)
def test_a_file_of_localqueues_own_is_refused_with_a_pointer(table: str, open_store: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table {table} (key text)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"holdfast import localqueue {path}"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_folder_of_localqueues_own_is_refused_with_a_pointer(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "old")) as environment, environment.begin(write=True) as txn:
        txn.put(b"queue:jobs:seq", b"1")
    for kind in (LMDBQueueStore, LMDBResultStore):
        with pytest.raises(StoreError, match="holdfast import localqueue"):
            kind(tmp_path / "old")


def test_tables_of_the_application_in_the_same_file_are_no_reason_to_refuse(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite3"
    store = SQLiteQueueStore(path)
    PersistentQueue[int]("jobs", store=store).put(1)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("create table queue_messages (mine text)")
    connection.close()
    again = SQLiteQueueStore(path)
    assert PersistentQueue[int]("jobs", store=again).get() == 1
    again.close()


def test_a_locked_environment_raises_the_documented_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise lmdb.LockError("locked by another process")

    monkeypatch.setattr("holdfast.stores.lmdb.environment.lmdb.open", locked)
    with pytest.raises(QueueStoreLockedError) as raised:
        PersistentQueue[int]("jobs", store=LMDBQueueStore(tmp_path / "jobs")).put(1)
    assert isinstance(raised.value, RuntimeError | StoreUnavailable)
    assert raised.value.path == str(tmp_path / "jobs")


@pytest.mark.parametrize("make", [lambda path: SQLiteQueueStore(path, timeout=-1), lambda path: LMDBQueueStore(path, map_size=0)])
def test_bad_options_are_refused(make: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"timeout|map_size"):
        make(tmp_path / "jobs")


def test_a_client_can_be_given(tmp_path: Path) -> None:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/jobs") as client:
        queue = PersistentQueue[Any]("jobs", store=client)
        queue.put(json.loads("[1, 2]"))
        assert queue.get() == [1, 2]
