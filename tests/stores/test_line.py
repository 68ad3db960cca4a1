"""Who is woken in a line, and how little a line costs."""

from pathlib import Path

import pytest

from holdfast.commands import Acquire, LeaseName, Release
from holdfast.commands.topics import line_topic
from holdfast.stores import Store
from holdfast.stores.lmdb.store import LmdbStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore


@pytest.mark.parametrize("kind", ["memory", "sqlite", "lmdb"])
def test_a_release_wakes_exactly_those_in_line_who_fit(tmp_path: Path, kind: str) -> None:
    made: dict[str, Store] = {}
    made[kind] = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s") if kind == "sqlite" else LmdbStore(tmp_path / "l")
    store = made[kind]
    woken: list[str] = []
    try:
        store.execute(Acquire(None, "gpu", "me", "first", 60.0, capacity=3, weight=3))
        for lease_id, weight in (("a", 1), ("b", 2), ("c", 1)):
            store.waiters.listen(line_topic("gpu", lease_id), lambda _, lease_id=lease_id: woken.append(lease_id))  # type: ignore[misc]
            store.execute(Acquire(None, "gpu", "me", lease_id, 60.0, capacity=3, weight=weight, in_line_s=60.0))
        assert woken == []
        store.execute(Release([LeaseName(None, "gpu", "first")]))
        assert woken == ["a", "b"], "c does not fit behind them"
    finally:
        store.close()
