"""Behind a pooler in transaction mode everything is as it is without one, but that waits poll."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.errors import InvalidSqlStatementName

from holdfast import ControlPlaneClient, Queue
from holdfast.testing.conformance import StoreConformance, StoreFactory
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
