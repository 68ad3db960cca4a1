"""A scan by prefix begins and ends with the prefix: what lies before and behind it costs nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Acquire, Change, Configure, Read, Write
from holdfast.stores.sqlite.dicts import LAST_TEXT
from holdfast.stores.sqlite.statements import SQL
from holdfast.stores.sqlite.store import SqliteStore


def test_a_scan_by_prefix_has_a_last_key(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.execute(Write("d", [Change(f'"{letter}{number}"', value=Raw(b"1")) for letter in "abc" for number in range(3)]))
    assert [entry.key for entry in store.execute(Read("d", prefix='"b')).entries] == ['"b0"', '"b1"', '"b2"']
    store.close()
    asked = {"dict": "d", "prefix": '"b', "last": '"b' + LAST_TEXT, "after": "", "limit": 10, "now": 0}
    with closing(sqlite3.connect(path)) as connection:
        plan = " ".join(str(row[3]) for row in connection.execute(f"explain query plan {SQL['scan']}", asked))
    assert "key<?" in plan


def steps_of(connection: sqlite3.Connection, statement: str, asked: Any) -> int:
    """How much SQLite does for a statement."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 1)
    try:
        connection.execute(statement, asked).fetchall()
    finally:
        connection.set_progress_handler(None, 1)
    return steps


SCANS: dict[str, Any] = {
    "scan": {"dict": "d", "prefix": '"z', "last": '"z' + LAST_TEXT, "after": "", "limit": 10, "now": 0},
    "names": {"kind": "dict", "prefix": "z", "after": "", "limit": 10},
    "leases_of": ("d", "", '"z', '"z' + LAST_TEXT),
}


@pytest.mark.parametrize("name", sorted(SCANS))
def test_what_lies_before_the_prefix_costs_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "store.db"
    store, costs = SqliteStore(path), list[int]()
    for letters in (["z", "a"], *["a"] * 50):
        make(store, [f"{letter}{len(costs)}-{number}" for letter in letters for number in range(5)])
        with closing(sqlite3.connect(path)) as connection:
            costs.append(steps_of(connection, SQL[name], SCANS[name]))
    store.close()
    # The tree gets deeper, but is not walked through.
    assert 20 < costs[0] <= costs[-1] < costs[0] + 50


def make(store: SqliteStore, names: list[str]) -> None:
    """An entry, a lease and a dict of each name."""
    store.execute(Write("d", [Change(f'"{name}"', value=Raw(b"1")) for name in names]))
    for name in names:
        store.execute(Acquire("d", f'"{name}"', "me", name, 60.0))
        store.execute(Configure("dict", name))
