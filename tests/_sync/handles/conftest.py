# Generated from tests/_async/handles/conftest.py by tools/unasync.py; do not edit.
"""A client of each embedded store, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def client(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[ControlPlaneClient]:
    stores = {
        "memory": lambda: MemoryStore(clock=clock),
        "sqlite": lambda: SqliteStore(tmp_path / "store", durability="process", clock=clock),
        "lmdb": lambda: LmdbStore(tmp_path / "store", durability="process", clock=clock),
    }
    with ControlPlaneClient.on(stores[request.param]()) as made:
        yield made
