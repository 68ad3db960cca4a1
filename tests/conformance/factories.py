"""How this project's stores are opened for the suite."""

from pathlib import Path

from msgspec import Struct

from holdfast.clock import Clock
from holdfast.server.app import Options
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.stores import Store
from holdfast.stores.http.store import HttpStore
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.redis import RedisStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance import StoreFactory
from holdfast.testing.postgres import PinnedPostgresStore
from tests.server.serving import Served


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


class ServedStore(HttpStore):
    """Ends its server with itself."""

    def __init__(self, served: Served, clock: Clock, path: str = "", token: str | None = None) -> None:
        super().__init__(served.url + path, clock=clock, token=token)
        self._served = served

    def close(self) -> None:
        if not self.closing.is_set():
            super().close()
            self._served.close()


class HttpFactory(Struct, frozen=True):
    """A store behind a server that takes copies from anyone; both end when the client is closed."""

    factory: StoreFactory

    def make(self, clock: Clock) -> Store:
        return ServedStore(Served(self.factory.make(clock), Options(allows_copy=True)), clock)


class TenantFactory(Struct, frozen=True):
    """The same, in a namespace, by a token that may prune, which is the whole server's, too."""

    factory: StoreFactory

    def make(self, clock: Clock) -> Store:
        store = self.factory.make(clock)
        _, token = create_token(store, "tenant", ["admin"], ["*"], by=Actor("the suite", "here"))
        return ServedStore(Served(store), clock, "/ns/acme", token)


class RedisFactory(Struct, frozen=True):
    url: str

    def make(self, clock: Clock) -> Store:
        return RedisStore(self.url, clock=clock)


class PostgresFactory(Struct, frozen=True):
    url: str

    def make(self, clock: Clock) -> Store:
        assert isinstance(clock, FakeClock)
        return PinnedPostgresStore(self.url, clock)
