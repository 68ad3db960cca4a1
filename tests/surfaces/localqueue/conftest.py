"""localqueue's queue on each store, on a clock that the test moves."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.surfaces.localqueue import URLQueueStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.factory import StoreFactory
from tests.conformance.factories import LmdbFactory, MemoryFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "lmdb", "redis", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[URLQueueStore]:
    factories: dict[str, Callable[[], StoreFactory]] = {
        "memory": MemoryFactory,
        "sqlite": lambda: SqliteFactory(tmp_path),
        "lmdb": lambda: LmdbFactory(tmp_path),
        "redis": lambda: RedisFactory(own_redis_url()),
        "postgres": lambda: PostgresFactory(empty_postgres_url()),
    }
    with ControlPlaneClient.on(factories[request.param]().make(clock)) as client:
        yield URLQueueStore(client)


@pytest.fixture
async def closed_in_loop(store: URLQueueStore) -> AsyncIterator[None]:
    """Connections of tasks belong to their loop, and are closed in it."""
    yield
    await store.client.aio.close()
