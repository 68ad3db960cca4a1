# Generated from tests/_async/handles/conftest.py by tools/unasync.py; do not edit.
"""A client of each embedded store, on a clock that the test moves. A file for fewer or more stores has a fixture `kind` of its own."""

from collections.abc import Iterator
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
def client(kind: str, tmp_path: Path, clock: FakeClock) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(factory_of(kind, tmp_path).make(clock)) as made:
        yield made
