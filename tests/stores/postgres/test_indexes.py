"""A claim walks indexes and never the table, however many messages were settled and whoever keeps old versions of them."""

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.commands import Put
from holdfast.connect import connect
from holdfast.stores import Store
from holdfast.testing.conformance.asking import JOBS, claim, item, settle

SCANS = "select seq_scan, idx_scan, idx_tup_fetch from pg_stat_xact_user_tables where schemaname = 'holdfast' and relname = 'messages'"


@pytest.fixture
def store(postgres_server: str) -> Iterator[Store]:
    store = connect(postgres_server)
    yield store
    store.close()
    with psycopg.connect(postgres_server) as connection:
        connection.execute("drop schema holdfast cascade")


def fill(store: Store, count: int) -> None:
    for start in range(0, count, 5_000):
        store.execute(Put(JOBS, [item(str(n)) for n in range(start, min(start + 5_000, count))]))


def scans_of_a_claim(url: str) -> tuple[int, int, int]:
    """How a claim and its acknowledgement read the table: whole, by an index, and how many rows they fetched."""
    with psycopg.connect(url) as connection:
        mine = connect(connection)
        connection.execute("select 1")
        assert settle(mine, claim(mine)) == [True]
        row = connection.execute(SCANS).fetchone()
        connection.rollback()
    assert row is not None
    return row


def settle_all_but(store: Store, left: int, count: int) -> None:
    for start in range(left, count, 1_000):
        settle(store, claim(store, min(1_000, count - start)))


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=[pytest.mark.verify, pytest.mark.timeout(1_800)])])
def test_a_claim_reads_by_indexes_after_many_settled_messages_and_beside_a_transaction_held_open(
    store: Store, postgres_server: str, count: int
) -> None:
    with psycopg.connect(postgres_server) as holding:
        holding.execute("set transaction isolation level repeatable read")
        fill(store, count)
        holding.execute("select count(*) from holdfast.messages")
        settle_all_but(store, 100, count)
        whole, by_index, _ = scans_of_a_claim(postgres_server)
    assert (whole, by_index > 0) == (0, True)


def test_control_without_its_index_the_same_claim_reads_the_table(store: Store, postgres_server: str) -> None:
    fill(store, 5_000)
    with psycopg.connect(postgres_server) as connection:
        connection.execute("drop index holdfast.messages_ready")
    _, _, fetched = scans_of_a_claim(postgres_server)
    whole, _, _ = scans_of_a_claim(postgres_server)
    assert whole > 0 or fetched > 1_000
