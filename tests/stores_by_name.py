"""URLs of stores of one test alone, by the name of their kind."""

from collections.abc import Callable
from pathlib import Path

from holdfast.ids import new_id
from holdfast.testing.conformance.factory import StoreFactory
from tests.conformance.factories import HttpFactory, LmdbFactory, MemoryFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url, own_postgres_url
from tests.servers import own_redis_url

ELSEWHERE: dict[str, Callable[[], str]] = {
    "memory": lambda: f"memory://{new_id()}",
    "redis": own_redis_url,
    "postgres": own_postgres_url,
}


def url_of(kind: str, folder: Path) -> str:
    """A new, empty store: memory that the process shares, a file in the folder, or part of a server of the tests."""
    return ELSEWHERE[kind]() if kind in ELSEWHERE else f"{kind}:///{folder}/store"


def factory_of(kind: str, folder: Path) -> StoreFactory:
    """Opens a new, empty store on a clock of the test."""
    if kind == "http":
        return HttpFactory(MemoryFactory())
    if kind == "postgres":
        return PostgresFactory(empty_postgres_url())
    if kind == "redis":
        return RedisFactory(own_redis_url())
    embedded: dict[str, StoreFactory] = {"memory": MemoryFactory(), "sqlite": SqliteFactory(folder), "lmdb": LmdbFactory(folder)}
    return embedded[kind]
