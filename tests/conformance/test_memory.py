"""The memory store keeps the contract, for threads and for tasks."""

import pytest

from holdfast.testing.conformance import CopyConformance, ForTasks, GroupCopyConformance, PolicyConformances, StoreConformance, StoreFactory
from tests.conformance.factories import MemoryFactory


class TestMemory(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return MemoryFactory()


class TestMemoryForTasks(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return ForTasks(MemoryFactory())
