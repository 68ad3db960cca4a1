"""A scan by prefix ends with the prefix: what lies behind it costs nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Raw

from holdfast.commands import Change, Read, Write
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
