"""Writers killed many times, for `make verify`."""

from pathlib import Path

import pytest

from holdfast.testing.conformance import FileConformance, StoreFactory
from tests.conformance.factories import LmdbFactory, SqliteFactory

pytestmark = pytest.mark.verify


class TestSqliteKills(FileConformance):
    kills = 100

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return SqliteFactory(tmp_path)


class TestLmdbKills(FileConformance):
    kills = 100

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return LmdbFactory(tmp_path)
