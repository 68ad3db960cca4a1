"""The counts that SQLite keeps: true after every command, and walked again where an older release wrote."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.commands import Clear, Prune
from holdfast.stores import Store
from holdfast.stores.sqlite.counts import fold
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import claim, put, settle, stats


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[Store]:
    store = SqliteStore(path, clock=FakeClock())
    yield store
    store.close()


def kept(path: Path, queue: str = "jobs") -> tuple[int, ...] | None:
    """What is written down of a queue: ready, leased, buffered, dead, done."""
    with sqlite3.connect(path) as connection:
        fold(connection.cursor())
        row: tuple[int, ...] | None = connection.execute(
            "select ready, leased, buffered, dead, done from holdfast_counts where queue = ?", (queue,)
        ).fetchone()
    return row


def test_a_commit_writes_down_what_it_changed(sqlite: Store, path: Path) -> None:
    put(sqlite, "a", "b", "c")
    put(sqlite, "d", key="k")
    claimed = claim(sqlite, 3)
    assert kept(path) == (1, 3, 0, 0, 0)
    settle(sqlite, claimed[:1])
    settle(sqlite, claimed[1:2], to="dead")
    settle(sqlite, claimed[2:], to="ready")
    assert kept(path) == (2, 0, 0, 1, 0)
    sqlite.execute(Clear("queue", "jobs"))
    assert kept(path) == (0, 0, 0, 0, 0)
    sqlite.execute(Clear("queue", "jobs", drop=True))
    assert kept(path) is None


def test_after_an_older_release_wrote_queues_are_walked_until_the_file_is_opened_again(sqlite: Store, path: Path) -> None:
    put(sqlite, "a", "b")
    with sqlite3.connect(path) as older:
        older.execute("update holdfast_messages set state = 'dead', dead_at = 1, alarm = null where id = 'a'")
        older.execute("insert into holdfast_events (topic, event, data, at) values ('queue:jobs', 'settled', x'7b7d', 1)")
    assert kept(path) is None
    assert (stats(sqlite).ready, stats(sqlite).dead) == (1, 1)
    put(sqlite, "c")
    assert kept(path) is None, "one queue may not be counted in part"
    assert stats(sqlite).ready == 2
    again = SqliteStore(path, clock=FakeClock())
    assert kept(path) == (2, 0, 0, 1, 0)
    put(again, "d")
    assert kept(path) == (3, 0, 0, 1, 0)
    again.close()


def test_what_events_say_is_added_before_they_are_pruned(sqlite: Store, path: Path) -> None:
    for number in range(250):
        put(sqlite, f"m{number}")
    claim(sqlite, 1)
    sqlite.execute(Prune(keep=0, keep_s=0))
    assert (stats(sqlite).ready, stats(sqlite).leased) == (249, 1)
    assert kept(path) == (249, 1, 0, 0, 0)


def test_control_counts_that_miss_a_commit_are_wrong(sqlite: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(sqlite, "a")
    monkeypatch.setattr("holdfast.stores.sqlite.transaction.SqliteTransaction.save_counts", lambda tx: tx.shifts.clear())
    put(sqlite, "b", labels=("by the rules",))
    assert stats(sqlite).total == 1, "this test would not notice a wrong count"
