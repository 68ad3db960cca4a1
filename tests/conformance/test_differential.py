"""Every store answers random histories as the memory store does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from holdfast.testing.differential import Opens, run
from holdfast.testing.stateful import machine_for
from tests.conformance.factories import HttpFactory, LmdbFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url


def redis_in(_: Path) -> RedisFactory:
    return RedisFactory(own_redis_url())


def postgres_in(_: Path) -> PostgresFactory:
    return PostgresFactory(empty_postgres_url())


def http_in(folder: Path) -> HttpFactory:
    return HttpFactory(SqliteFactory(folder))


FACTORIES: list[Callable[[Path], Opens]] = [SqliteFactory, LmdbFactory, redis_in]
SHORT = settings(max_examples=15, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("factory_in", FACTORIES)
@pytest.mark.parametrize("seed", range(4, 16))
def test_a_random_history_is_answered_as_in_memory(tmp_path: Path, factory_in: Callable[[Path], Opens], seed: int) -> None:
    run(factory_in(tmp_path), seed, steps=300)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_random_history_over_http_is_answered_as_in_memory(tmp_path: Path, seed: int) -> None:
    run(http_in(tmp_path), seed, steps=200)


@pytest.mark.verify
@pytest.mark.parametrize("factory_in", [*FACTORIES, http_in])
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_long_random_history_is_answered_as_in_memory(tmp_path: Path, factory_in: Callable[[Path], Opens], seed: int) -> None:
    run(factory_in(tmp_path), seed, steps=3_000, dump_to=tmp_path / "history.jsonl")


@pytest.mark.parametrize("seed", range(4, 16))
def test_a_random_history_on_postgres_is_answered_as_in_memory(postgres_url: str, seed: int) -> None:
    run(PostgresFactory(postgres_url), seed, steps=300)


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_long_random_history_on_postgres_is_answered_as_in_memory(postgres_url: str, tmp_path: Path, seed: int) -> None:
    run(PostgresFactory(postgres_url), seed, steps=3_000, dump_to=tmp_path / "history.jsonl")


TestSqliteMachine = machine_for(SqliteFactory).TestCase
TestSqliteMachine.settings = SHORT
TestLmdbMachine = machine_for(LmdbFactory).TestCase
TestLmdbMachine.settings = SHORT
TestRedisMachine = machine_for(redis_in).TestCase
TestRedisMachine.settings = SHORT
TestPostgresMachine = machine_for(postgres_in).TestCase
TestPostgresMachine.settings = settings(SHORT, max_examples=5)
