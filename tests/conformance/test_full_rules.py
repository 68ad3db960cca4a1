"""Every store keeps the contract by its full rules alone, with its fast path switched off.

The suite runs in `make verify`, and random histories in every run.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.testing.conformance import CopyConformance, FileConformance, PolicyConformances, StoreConformance, StoreFactory
from holdfast.testing.differential import Opens, run
from tests.conformance.factories import LmdbFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.conformance.plain import switch_off
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url
from tests.testing.controls import PlainFactory


@pytest.fixture(autouse=True)
def full_rules_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command is plain, so every store executes it by its full rules; in memory a store is told so."""
    switch_off(monkeypatch)


@pytest.mark.verify
class TestMemory(StoreConformance, PolicyConformances, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return PlainFactory()


@pytest.mark.verify
class TestSqlite(StoreConformance, PolicyConformances, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return SqliteFactory(tmp_path)


@pytest.mark.verify
class TestLmdb(StoreConformance, PolicyConformances, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return LmdbFactory(tmp_path)


@pytest.mark.verify
class TestRedis(StoreConformance, PolicyConformances, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return RedisFactory(own_redis_url())


@pytest.mark.verify
class TestPostgres(StoreConformance, PolicyConformances, CopyConformance):
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
@pytest.mark.parametrize("seed", [1, 2, 8])
def test_a_random_history_is_answered_as_in_memory(tmp_path: Path, store: str, seed: int) -> None:
    """The memory store takes its fast path still, but for checkpoints, so the two ways are compared. Two seeds draw groups and policies."""
    run(STORES[store](tmp_path), seed, steps=200)
