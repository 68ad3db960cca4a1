"""The LMDB store keeps the contract, for threads and for tasks."""

from pathlib import Path

import pytest
from msgspec import Struct

from holdfast.clock import Clock
from holdfast.stores import Store
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.threaded import ThreadedStore
from holdfast.testing.aio import LoopStore
from holdfast.testing.conformance import FileConformance, StoreConformance, StoreFactory


class LmdbFactory(Struct, frozen=True):
    folder: Path

    def make(self, clock: Clock) -> Store:
        return LmdbStore(self.folder / "store", clock=clock, durability="process")


class AsyncLmdbFactory(Struct, frozen=True):
    folder: Path

    def make(self, clock: Clock) -> Store:
        return LoopStore(lambda: ThreadedStore(LmdbStore(self.folder / "store", clock=clock, durability="process")))


class TestLmdb(StoreConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return LmdbFactory(tmp_path)


class TestAsyncLmdb(StoreConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return AsyncLmdbFactory(tmp_path)
