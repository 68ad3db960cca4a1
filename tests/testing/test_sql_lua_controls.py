"""For the guarantees that SQL and Lua keep by themselves: the suite notices a store whose own code is broken."""

from collections.abc import Iterator
from itertools import chain

import pytest

from holdfast.testing.conformance import StoreFactory
from tests.conformance.factories import PostgresFactory, RedisFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url
from tests.testing import broken_lua, broken_sql
from tests.testing.controls import run
from tests.testing.sql_lua_mutants import LUA, SQL
from tests.testing.text_mutant import TextMutant

ROLE = " broken"


def named(mutant: TextMutant) -> str:
    return mutant.name.replace(" ", "-")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.testing.conformance.threads.PATIENCE_S", 0.4)


def tries(mutant: TextMutant, factory: StoreFactory) -> Iterator[BaseException]:
    """What the named test says of the broken store. Where threads race, luck may lead past what is broken, but not again and again."""
    return chain.from_iterable(run(mutant.noticed_by, factory) for _ in range(5))


@pytest.mark.parametrize("mutant", SQL, ids=named)
def test_a_postgres_store_with_broken_functions_is_noticed(mutant: TextMutant) -> None:
    url = empty_postgres_url(ROLE)
    with broken_sql.broken(url, mutant.find, mutant.instead):
        noticed = next(tries(mutant, PostgresFactory(url)), None)
    assert noticed, f"a store that {mutant.name} passes {mutant.noticed_by}"


@pytest.mark.parametrize("mutant", LUA, ids=named)
def test_a_redis_store_with_broken_scripts_is_noticed(mutant: TextMutant) -> None:
    with broken_lua.broken(mutant.find, mutant.instead):
        noticed = next(tries(mutant, RedisFactory(own_redis_url())), None)
    assert noticed, f"a store that {mutant.name} passes {mutant.noticed_by}"
