"""How this project's stores are opened for the suite."""

from pathlib import Path

from msgspec import Struct

from holdfast.clock import Clock
from holdfast.stores import Store
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore


class MemoryFactory(Struct, frozen=True):
    def make(self, clock: Clock) -> Store:
        return MemoryStore(clock=clock)


class SqliteFactory(Struct, frozen=True):
    folder: Path

    def make(self, clock: Clock) -> Store:
        return SqliteStore(self.folder / "store.db", clock=clock, durability="process")


class LmdbFactory(Struct, frozen=True):
    folder: Path

    def make(self, clock: Clock) -> Store:
        return LmdbStore(self.folder / "store.lmdb", clock=clock, durability="process")
