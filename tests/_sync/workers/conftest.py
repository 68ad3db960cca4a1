# Generated from tests/_async/workers/conftest.py by tools/unasync.py; do not edit.
"""A client of each store, on a clock that the test moves; `make verify` takes those that are reached over a network, too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of

EVERYWHERE = ["memory", "sqlite", "lmdb", *(pytest.param(kind, marks=pytest.mark.verify) for kind in ("redis", "postgres", "http"))]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=EVERYWHERE)
def client(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(factory_of(request.param, tmp_path).make(clock)) as made:
        yield made
