"""The connections on which a SQLite file is read."""

from pathlib import Path

import pytest
from msgspec import Raw, json

from holdfast.commands import Browse, Changes, Item, Put, Together
from holdfast.errors import Refused
from holdfast.stores.sqlite.store import SqliteStore


def test_a_read_that_was_refused_in_its_middle_leaves_no_old_moment_behind(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", durability="process")
    large = Raw(json.encode("x" * 1_000_000))
    for number in range(20):
        store.execute(Put("q", [Item(str(number), large)]))
    before = store.execute(Changes("queue:q", limit=1)).latest
    with pytest.raises(Refused) as kept:
        store.execute(Together([Browse("q", limit=20), Browse("q", limit=20)]))
    store.execute(Put("q", [Item("newest", Raw(b"1"))]))
    assert store.execute(Changes("queue:q", limit=1)).latest > before
    assert "16 MiB" in str(kept.value)
    store.close()
