"""The SQLite store keeps the contract, for threads and for tasks."""

from pathlib import Path

import pytest

from holdfast.testing.conformance import (
    CopyConformance,
    FaceConformance,
    FileConformance,
    ForTasks,
    GroupCopyConformance,
    PolicyConformances,
    StatementConformance,
    StoreConformance,
    StoreFactory,
)
from tests.conformance.counting import CountedSqliteFactory
from tests.conformance.factories import SqliteFactory


class TestSqlite(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return SqliteFactory(tmp_path)


class TestSqliteForTasks(FaceConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return ForTasks(SqliteFactory(tmp_path))


@pytest.mark.verify
class TestAllOfSqliteForTasks(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return ForTasks(SqliteFactory(tmp_path))


class TestSqliteStatements(StatementConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return CountedSqliteFactory(tmp_path)
