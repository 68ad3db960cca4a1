"""The memory store keeps the contract, for threads and for tasks."""

import pytest

from holdfast.testing.conformance import CopyConformance, ForTasks, StoreConformance, StoreFactory
from tests.conformance.factories import MemoryFactory


class TestMemory(StoreConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return MemoryFactory()


class TestMemoryForTasks(StoreConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return ForTasks(MemoryFactory())
