# Generated from tests/_async/workers/conftest.py by tools/unasync.py; do not edit.
"""A client of each embedded store, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.factory import StoreFactory
from tests.conformance.factories import LmdbFactory, MemoryFactory, SqliteFactory


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def client(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[ControlPlaneClient]:
    factories: dict[str, StoreFactory] = {"memory": MemoryFactory(), "sqlite": SqliteFactory(tmp_path), "lmdb": LmdbFactory(tmp_path)}
    with ControlPlaneClient.on(factories[request.param].make(clock)) as made:
        yield made
