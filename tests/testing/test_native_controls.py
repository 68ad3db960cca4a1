"""For the guarantees that SQL and Lua keep by themselves: the suite notices a store whose own code is broken."""

import pytest

from tests.conformance.factories import PostgresFactory, RedisFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url
from tests.testing import broken_lua, broken_sql
from tests.testing.controls import run
from tests.testing.native_mutants import LUA, SQL, TextMutant

ROLE = " broken"


def named(mutant: TextMutant) -> str:
    return mutant.name.replace(" ", "-")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.testing.conformance.threads.PATIENCE_S", 0.4)


@pytest.mark.parametrize("mutant", SQL, ids=named)
def test_a_postgres_store_with_broken_functions_is_noticed(mutant: TextMutant) -> None:
    url = empty_postgres_url(ROLE)
    with broken_sql.broken(url, mutant.find, mutant.instead):
        assert next(run(mutant.noticed_by, PostgresFactory(url)), None), f"a store that {mutant.name} passes {mutant.noticed_by}"


@pytest.mark.parametrize("mutant", LUA, ids=named)
def test_a_redis_store_with_broken_scripts_is_noticed(mutant: TextMutant) -> None:
    with broken_lua.broken(mutant.find, mutant.instead):
        noticed = next(run(mutant.noticed_by, RedisFactory(own_redis_url())), None)
    assert noticed, f"a store that {mutant.name} passes {mutant.noticed_by}"
