"""A client of each embedded store, on a clock that the test moves. A file for fewer or more stores has a fixture `kind` of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def client(kind: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[ControlPlaneClient]:
    async with ControlPlaneClient.on(factory_of(kind, tmp_path).make(clock)) as made:
        yield made
