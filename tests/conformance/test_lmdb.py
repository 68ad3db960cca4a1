"""The LMDB store keeps the contract, for threads and for tasks."""

from pathlib import Path

import pytest

from holdfast.testing.conformance import (
    CopyConformance,
    FaceConformance,
    FileConformance,
    ForTasks,
    GroupCopyConformance,
    PolicyConformances,
    StoreConformance,
    StoreFactory,
)
from tests.conformance.factories import LmdbFactory


class TestLmdb(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return LmdbFactory(tmp_path)


class TestLmdbForTasks(FaceConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return ForTasks(LmdbFactory(tmp_path))


@pytest.mark.verify
class TestAllOfLmdbForTasks(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return ForTasks(LmdbFactory(tmp_path))
