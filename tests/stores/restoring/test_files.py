"""SQLite files and LMDB folders that are replaced by backups of themselves."""

import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.commands import Changes, Read
from holdfast.errors import Compacted, Refused, StoreError
from holdfast.stores.files import replaced
from holdfast.stores.lmdb import numbers as lmdb_numbers
from holdfast.stores.lmdb.store import LmdbStore
from holdfast.stores.sqlite import log as sqlite_log
from holdfast.stores.sqlite import on_connection
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.testing.conformance.asking import put, write
from tests.stores.restoring.histories import QUEUE, check_reopened, check_restored, lose, newest, opened

Put = Callable[[Path, Path], None]


def write_over(backup: Path, place: Path) -> None:
    """As `cp` does: the same file with other contents."""
    place.write_bytes(backup.read_bytes())


def put_in_place(backup: Path, place: Path) -> None:
    """As `mv` does: another file under the same name."""
    shutil.copy(backup, backup.with_suffix(".new"))
    backup.with_suffix(".new").rename(place)


@pytest.mark.parametrize("put_back", [write_over, put_in_place])
def test_a_sqlite_file_put_back_hands_out_no_token_twice_and_its_watches_notice(tmp_path: Path, put_back: Put) -> None:
    path, backup = tmp_path / "jobs.db", tmp_path / "backup.db"
    lost = lose(lambda: SqliteStore(path), lambda: write_over(path, backup))
    put_back(backup, path)
    check_restored(lambda: SqliteStore(path), lost)


@pytest.mark.parametrize("put_back", [write_over, put_in_place])
def test_an_lmdb_folder_put_back_hands_out_no_token_twice_and_its_watches_notice(tmp_path: Path, put_back: Put) -> None:
    path, backup = tmp_path / "jobs", tmp_path / "backup"
    lost = lose(lambda: LmdbStore(path), lambda: write_over(path / "data.mdb", backup))
    put_back(backup, path / "data.mdb")
    check_restored(lambda: LmdbStore(path), lost)


@pytest.mark.parametrize(
    ("method", "answer", "noticed"),
    [("_leap", None, AssertionError), ("was_skipped", False, pytest.fail.Exception), ("was_skipped", True, Refused)],
)
def test_a_store_that_does_not_leap_or_does_not_look_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, answer: object, noticed: type[BaseException]
) -> None:
    monkeypatch.setattr(SqliteTransaction, method, lambda *_: answer)
    path, backup = tmp_path / "jobs.db", tmp_path / "backup.db"

    def lose_and_check() -> None:
        lost = lose(lambda: SqliteStore(path), lambda: write_over(path, backup))
        write_over(backup, path)
        check_restored(lambda: SqliteStore(path), lost)

    with pytest.raises(noticed):
        lose_and_check()


def test_a_folder_put_back_as_a_whole_is_noticed_too(tmp_path: Path) -> None:
    path, backup = tmp_path / "jobs", tmp_path / "backup"

    def back_up() -> None:
        shutil.copytree(path, backup)

    lost = lose(lambda: LmdbStore(path), back_up)
    shutil.rmtree(path)
    shutil.copytree(backup, path)
    check_restored(lambda: LmdbStore(path), lost)


@pytest.mark.parametrize("kind", [SqliteStore, LmdbStore])
def test_opening_a_file_again_disturbs_no_watch(tmp_path: Path, kind: type[SqliteStore] | type[LmdbStore]) -> None:
    check_reopened(lambda: kind(tmp_path / "jobs"))


@pytest.mark.parametrize("kind", [SqliteStore, LmdbStore])
def test_a_copy_is_named_in_the_log_once(
    tmp_path: Path, kind: type[SqliteStore] | type[LmdbStore], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs"
    with opened(lambda: kind(path)) as store:
        put(store, "a")
    data = path if path.is_file() else path / "data.mdb"
    put_in_place(data, data)
    for _ in range(2):
        kind(path).close()
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "holdfast restore" in warned[0]


@pytest.mark.parametrize("kind", [SqliteStore, LmdbStore])
def test_a_file_replaced_under_an_open_store_is_not_written_any_more(
    tmp_path: Path, kind: type[SqliteStore] | type[LmdbStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaced, "LOOK_S", 0.0)
    path = tmp_path / "jobs"
    with opened(lambda: kind(path)) as store:
        put(store, "a")
        data = path if path.is_file() else path / "data.mdb"
        put_in_place(data, data)
        with pytest.raises(StoreError, match="replaced"):
            put(store, "b")
        with pytest.raises(StoreError, match="replaced"):
            store.execute(Read("settings"))


@pytest.mark.parametrize("kind", [SqliteStore, LmdbStore])
def test_a_file_removed_under_an_open_store_is_not_written_until_it_is_back(
    tmp_path: Path, kind: type[SqliteStore] | type[LmdbStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaced, "LOOK_S", 0.0)
    path = tmp_path / "jobs"
    with opened(lambda: kind(path)) as store:
        put(store, "a")
        data = path if path.is_file() else path / "data.mdb"
        kept = data.rename(tmp_path / "kept")
        with pytest.raises(StoreError, match="was removed while it was open, and what is written to it is lost: put it back"):
            put(store, "b")
        kept.rename(data)
        put(store, "b")


def test_a_program_that_lends_connections_lets_the_numbers_leap_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.db"
    for program, names in (("one", ["a", "b", "c"]), ("another", ["d", "e"])):
        monkeypatch.setattr(on_connection, "THIS_PROGRAM", program)
        for name in names:
            with closing(sqlite3.connect(path)) as connection, closing(on_connection.BorrowedStore(connection)) as store:
                put(store, name)
    with opened(lambda: SqliteStore(path)) as store:
        numbers = [event.index for event in store.execute(Changes(QUEUE)).events]
    steps = [after - before for before, after in pairwise(numbers)]
    assert [step > 1 for step in steps] == [False, False, True, False]


def test_a_callers_transaction_that_is_rolled_back_leaves_no_leap_behind(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        put(store, "a")
    with closing(SqliteStore(tmp_path / "jobs.db")) as store, closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        before = newest(store)
        connection.execute("begin immediate")
        within = store.within(connection)
        write(within, "k", 1)  # type: ignore[arg-type]
        connection.rollback()
        assert newest(store) == before
        connection.execute("begin immediate")
        revision = write(store.within(connection), "k", 1).entry.revision  # type: ignore[arg-type, union-attr]
        second = write(store.within(connection), "k", 2).entry.revision  # type: ignore[arg-type, union-attr]
        connection.commit()
        assert revision > before + 1, "the numbers leapt"
        assert second == revision + 1, "and leapt once"
        put(store, "b")
        assert newest(store) == second + 1


@pytest.mark.parametrize("kind", [SqliteStore, LmdbStore])
def test_only_so_many_gaps_are_remembered_and_who_was_away_for_more_begins_anew(
    tmp_path: Path, kind: type[SqliteStore] | type[LmdbStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "GAPS", 3)
    monkeypatch.setattr(lmdb_numbers, "GAPS", 3)
    indexes = []
    for name in "abcdef":
        with opened(lambda: kind(tmp_path / "jobs")) as store:
            put(store, name)
            indexes.append(newest(store))
    with opened(lambda: kind(tmp_path / "jobs")) as store:
        for index in indexes[:2]:
            with pytest.raises(Compacted):
                store.execute(Changes(QUEUE, index))
        for place, index in enumerate(indexes[2:], 3):
            assert len(store.execute(Changes(QUEUE, index)).events) == 6 - place
