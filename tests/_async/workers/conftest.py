"""A client of each store, on a clock that the test moves; `make verify` takes those that are reached over a network, too."""

from collections.abc import AsyncIterator
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
async def client(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[ControlPlaneClient]:
    async with ControlPlaneClient.on(factory_of(request.param, tmp_path).make(clock)) as made:
        yield made
