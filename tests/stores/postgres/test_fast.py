"""Plain commands, which have functions of their own: what these share with the general one, and what they leave to it."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from holdfast.commands import Acquire, Change, Command, LeaseName, Release, Renew, Write
from holdfast.connect import connect
from holdfast.stores.postgres._sync.asking import ask
from holdfast.stores.postgres.calls import Asking, answer
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import DICT, acquire, events, grant, read, release, renew, write
from tests.postgres import own_postgres_url
from tests.testing.broken_sql import broken

LOCK = "lock"
TABLES = ("leases", "events", "listeners", "answers", "names", "entries")
WHOLE = "select relname from pg_stat_xact_user_tables where schemaname = 'holdfast' and seq_scan > 0 and relname = any (%s)"


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(own_postgres_url())
    yield store
    store.close()


@pytest.fixture
def connection(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    """On the default schema, as psycopg makes them: the first statement begins a transaction."""
    connect(postgres_server).close()
    with psycopg.connect(postgres_server) as connection:
        yield connection
    with psycopg.connect(postgres_server) as connection:
        connection.execute("drop schema holdfast cascade")


def asked_twice(store: PostgresStore, command: Command[Any]) -> list[Any]:
    """The answers to a command whose first answer was not heard."""
    asking = Asking(store.calls, command)
    return [answer(command, ask(store.caller, asking.call)) for _ in range(2)]


def test_a_grant_that_was_not_heard_of_is_told_again(store: PostgresStore) -> None:
    first, again = asked_twice(store, Acquire(None, LOCK, "me", "mine", 30.0))
    assert first.lease == again.lease
    assert [event.event for event in events(store, f"lease::{LOCK}")] == ["acquired"]


def test_a_release_that_was_not_heard_of_is_told_again(store: PostgresStore) -> None:
    grant(store, "lock", lease_id="mine")
    first, again = asked_twice(store, Release([LeaseName(None, LOCK, "mine")]))
    assert (first.held, again.held) == ([True], [True])
    assert [event.event for event in events(store, f"lease::{LOCK}")] == ["acquired", "released"]


def test_control_without_its_answer_kept_a_release_would_be_called_lost() -> None:
    url = own_postgres_url()
    with broken(url, r"return remember\(command_id, now, '\{\"held\":\[true\]\}'\)", """return '{"held":[true]}'"""):
        store = PostgresStore(url)
        grant(store, "lock", lease_id="mine")
        first, again = asked_twice(store, Release([LeaseName(None, LOCK, "mine")]))
        assert (first.held, again.held) == ([True], [False])
        store.close()


def test_a_renewal_that_was_not_heard_of_is_made_again(store: PostgresStore) -> None:
    grant(store, "lock", lease_id="mine")
    first, again = asked_twice(store, Renew([LeaseName(None, LOCK, "mine")], 30.0))
    assert first.leases[0].token == again.leases[0].token
    assert first.leases[0].until <= again.leases[0].until


def test_a_write_that_was_not_heard_of_is_told_again(store: PostgresStore) -> None:
    first, again = asked_twice(store, Write(DICT, [Change("n", do="increment", by=1)]))
    assert first == again
    assert read(store, "n") == {"n": 1}


def test_who_asks_in_vain_locks_nothing_and_writes_nothing(store: PostgresStore, postgres_server: str) -> None:
    held = grant(store, "lock", lease_id="mine")
    latest = store.execute(Acquire(None, LOCK, "you", "yours", 30.0))
    assert latest.lease == held
    with psycopg.connect(postgres_server) as connection:
        yours = store.within(connection)
        assert yours.execute(Acquire(None, LOCK, "you", "yours", 30.0)).lease == held
        assert connection.execute("select pg_current_xact_id_if_assigned()").fetchone() == (None,)
        assert renew(store, held) is not None
        assert release(store, held)


def test_an_ended_lease_is_taken_over_and_told_of(store: PostgresStore) -> None:
    store.execute(Acquire(None, LOCK, "me", "mine", 0.000001))
    assert acquire(store, "lock", lease_id="yours", holder="you").lease.lease_id == "yours"
    assert [event.event for event in events(store, f"lease::{LOCK}")] == ["acquired", "expired", "acquired"]


def test_a_command_on_an_idle_connection_leaves_it_as_it_was(connection: psycopg.Connection[Any]) -> None:
    mine = connect(connection)
    for commits_each in (False, True):
        connection.autocommit = commits_each
        lease = grant(mine, "lock", lease_id=f"mine {commits_each}")
        assert renew(mine, lease) is not None
        assert release(mine, lease)
        assert connection.autocommit is commits_each
        assert connection.info.transaction_status == TransactionStatus.IDLE
    connection.autocommit = False
    connection.read_only = True
    with pytest.raises(Exception, match="read-only"):
        grant(mine, "lock", lease_id="never")
    assert connection.info.transaction_status == TransactionStatus.IDLE


def scanned_whole(connection: psycopg.Connection[Any]) -> list[str]:
    """The tables that single commands read from one end to the other, while these have next to nothing in them."""
    mine = connect(connection)
    release(mine, grant(mine, "other"))
    write(mine, "key", "old")
    grant(mine, "another", lease_id="kept")
    connection.autocommit = True
    connection.execute("vacuum analyze")
    connection.autocommit = False
    connection.execute("select 1")
    for turn in range(8):
        # A plan is made for the parameters at hand five times, and then once for all.
        lease = grant(mine, "lock", lease_id=f"mine {turn}")
        assert renew(mine, lease) is not None
        assert release(mine, lease)
        write(mine, f"key {turn}", turn)
        assert read(mine, f"key {turn}") == {f"key {turn}": turn}
    return [name for (name,) in connection.execute(WHOLE, (list(TABLES),)).fetchall()]


def test_single_commands_read_by_indexes_however_small_the_tables_were(connection: psycopg.Connection[Any]) -> None:
    assert scanned_whole(connection) == []


def test_control_without_their_settings_they_would_read_small_tables_whole(
    connection: psycopg.Connection[Any], postgres_server: str
) -> None:
    with broken(f"{postgres_server}?schema=holdfast", "set enable_seqscan = off", ""):
        assert scanned_whole(connection) != []
