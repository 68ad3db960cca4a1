"""localqueue's queue on each embedded store, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.surfaces.localqueue import URLQueueStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.factory import StoreFactory
from tests.conformance.factories import LmdbFactory, MemoryFactory, SqliteFactory


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[URLQueueStore]:
    factories: dict[str, StoreFactory] = {"memory": MemoryFactory(), "sqlite": SqliteFactory(tmp_path), "lmdb": LmdbFactory(tmp_path)}
    with ControlPlaneClient.on(factories[request.param].make(clock)) as client:
        yield URLQueueStore(client)
