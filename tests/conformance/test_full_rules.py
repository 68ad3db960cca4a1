"""Every store keeps the contract by its full rules alone, with its fast path switched off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import commands
from holdfast.commands import Command
from holdfast.testing.conformance import CopyConformance, FileConformance, StoreConformance, StoreFactory
from holdfast.testing.differential import Opens, run
from tests.conformance.factories import LmdbFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url
from tests.testing.controls import PlainFactory

PLAIN = [kind for kind in vars(commands).values() if isinstance(kind, type) and issubclass(kind, Command) and "plain" in vars(kind)]


def never_plain(_: Command[Any], *also: str) -> bool:
    del also
    return False


@pytest.fixture(autouse=True)
def full_rules_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command is plain, so every store executes it by its full rules; in memory a store is told so."""
    for kind in (Command, *PLAIN):
        monkeypatch.setattr(kind, "plain", never_plain)


class TestMemory(StoreConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return PlainFactory()


class TestSqlite(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return SqliteFactory(tmp_path)


class TestLmdb(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return LmdbFactory(tmp_path)


@pytest.mark.verify
class TestRedis(StoreConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return RedisFactory(own_redis_url())


@pytest.mark.verify
class TestPostgres(StoreConformance, CopyConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return PostgresFactory(postgres_url)


STORES: dict[str, Callable[[Path], Opens]] = {
    "sqlite": SqliteFactory,
    "lmdb": LmdbFactory,
    "redis": lambda _: RedisFactory(own_redis_url()),
    "postgres": lambda _: PostgresFactory(empty_postgres_url()),
}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seed", range(3))
def test_a_random_history_is_answered_as_in_memory(tmp_path: Path, store: str, seed: int) -> None:
    """The memory store takes its fast path still, so the two ways are compared."""
    run(STORES[store](tmp_path), seed, steps=200)
