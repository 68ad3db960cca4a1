"""Leases end by the running clock of the server, also for a transaction that began long ago."""

import psycopg

from holdfast.commands import Acquire, Look
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import grant
from tests.postgres import empty_postgres_url, shared_postgres
from tests.testing.broken_sql import broken

ROLE = " clock"


def is_granted_after_its_end(store: PostgresStore) -> bool:
    """Whether a transaction that began before a lease was taken gets it once that has ended."""
    with psycopg.connect(shared_postgres()) as connection:
        connection.execute("select")
        grant(store, lease_s=0.05)
        while store.execute(Look(None, ["lock"])).leases[0] is not None:
            pass
        answer = store.within(connection).execute(Acquire(dict=None, key="lock", holder="late", lease_id="late", lease_s=30.0))
        connection.rollback()
    return answer.lease.lease_id == "late"


def test_a_lease_ends_for_a_transaction_that_began_before_it() -> None:
    store = PostgresStore(empty_postgres_url(ROLE))
    assert is_granted_after_its_end(store)
    store.close()


def test_with_the_time_of_the_transactions_beginning_it_does_not() -> None:
    with broken(empty_postgres_url(ROLE), r"return shown \+ ahead", "return (extract(epoch from now()) * 1000000)::bigint"):
        store = PostgresStore(empty_postgres_url(ROLE))
        assert not is_granted_after_its_end(store)
        store.close()
