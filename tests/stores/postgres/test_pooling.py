"""Behind a pooler in transaction mode everything is as it is without one, but that waits poll."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.errors import InvalidSqlStatementName

from holdfast import ControlPlaneClient, Queue
from holdfast.connect import connect
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance import StoreConformance, StoreFactory
from holdfast.testing.conformance.asking import claim, put
from holdfast.testing.conformance.concurrency import ConcurrencyConformance
from holdfast.testing.conformance.leases import LeaseConformance
from holdfast.testing.conformance.threads import Doing, all_asleep
from holdfast.testing.conformance.waiting import WaitingConformance
from tests.conformance.factories import PostgresFactory
from tests.postgres import empty_postgres_url, own_postgres_url, shared_postgres
from tests.stores.postgres.pooling import PgBouncer, Rotation, found_pgbouncer, through

POOLERS = [Rotation, *([PgBouncer] if found_pgbouncer() else [])]
THEMES = [theme for theme in StoreConformance.__bases__ if theme is not WaitingConformance]


@pytest.fixture(scope="module")
def rotation() -> Iterator[Rotation]:
    with Rotation(shared_postgres()) as pooler:
        yield pooler


@pytest.fixture(scope="module", params=POOLERS)
def pooler(request: pytest.FixtureRequest) -> Iterator[Rotation | PgBouncer]:
    with request.param(shared_postgres()) as pooler:
        yield pooler


def test_a_session_remembers_nothing_behind_it(rotation: Rotation) -> None:
    url = through(rotation.port, shared_postgres())
    with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True):
        one.execute("prepare known as select 1")
        with pytest.raises(InvalidSqlStatementName):
            one.execute("execute known")


def prepared_through(url: str) -> int:
    """How many statements a session has prepared that answered a few commands."""
    store = connect(url)
    assert isinstance(store, PostgresStore)
    put(store, "a", "b")
    claim(store, 2)
    session = store.caller.pool.take(60)
    row = session.execute("select count(*) from pg_prepared_statements where not from_sql", prepare=False).fetchone()
    store.caller.pool.give_back(session)
    store.close()
    assert row is not None
    return int(row[0])


def test_statements_are_prepared_only_where_the_session_is_ours(pooler: Rotation | PgBouncer) -> None:
    url = empty_postgres_url()
    assert prepared_through(url) > 0
    assert prepared_through(through(pooler.port, url)) == 0


class TestBehindAPooler(LeaseConformance, ConcurrencyConformance):
    @pytest.fixture
    def factory(self, rotation: Rotation) -> StoreFactory:
        return PostgresFactory(through(rotation.port, empty_postgres_url()))


@pytest.mark.verify
class TestAllBehindAPooler(*THEMES):  # type: ignore[misc]
    @pytest.fixture
    def factory(self, pooler: Rotation | PgBouncer) -> StoreFactory:
        return PostgresFactory(through(pooler.port, empty_postgres_url()))


@pytest.mark.parametrize("kind", [Rotation, *(pytest.param(kind, marks=pytest.mark.verify) for kind in POOLERS[1:])])
def test_who_waits_behind_a_pooler_polls(kind: type[Rotation | PgBouncer]) -> None:
    url = own_postgres_url()
    with kind(shared_postgres()) as pooler, ControlPlaneClient(through(pooler.port, url)) as client, ControlPlaneClient(url) as other:
        jobs = Queue.create("jobs", client=client)
        waiting = Doing(lambda: jobs.get(timeout_s=60, poll_interval_s=0.1))
        all_asleep(waiting)
        Queue.create("jobs", client=other).put("work")
        assert waiting.result("a waiter behind a pooler") == "work"
