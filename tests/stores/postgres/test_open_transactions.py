"""Commands in a caller's open transaction: what they rely on stays so until its end, and its settings stay the caller's."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from holdfast.commands import Acquire, Acquired, Change, Clear, Command, Count, Extend, Read, Release, Seal, Survey, Write
from holdfast.commands.topics import lease_topic, log_topic, watch_topic
from holdfast.errors import StoreMoved
from holdfast.stores.postgres.function_names import own
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, acquire, claim, grant, name, put, raw, read, renew, settle, write
from holdfast.testing.postgres import PinnedPostgresStore
from tests.conformance.plain import switch_off
from tests.postgres import empty_postgres_url, own_postgres_url
from tests.sentinel_databases import until
from tests.testing.broken_sql import broken

Connection = psycopg.Connection[Any]
PINNED = " with a clock of its own"


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(own_postgres_url())
    yield store
    store.close()


@pytest.fixture
def connection(postgres_server: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_server) as connection:
        yield connection


def change_under(lease_id: str, *, together: bool) -> Write:
    changes = [Change("key", value=raw("new"), lease=lease_id)]
    return Write(DICT, [*changes, Change("beside", value=raw("new"))] if together else changes)


def is_taken_while_a_write_relies_on_it(connection: Connection, url: str, *, together: bool = False) -> bool:
    """Whether somebody gets a lease that has ended since another wrote under it, in a transaction that is still open."""
    clock = FakeClock()
    store = PinnedPostgresStore(url, clock)
    lease = grant(store, "key", lease_id="mine", dict=DICT)
    written = store.within(connection).execute(change_under("mine", together=together))
    assert [one.because for one in written] == [""] * len(written)
    assert renew(store, lease) is not None, "its holder goes on holding it"
    clock.advance(60)
    taken = acquire(store, "key", lease_id="yours", dict=DICT).lease.lease_id == "yours"
    connection.commit()
    assert read(store, "key") == {"key": "new"}
    assert acquire(store, "key", lease_id="yours", dict=DICT).lease.lease_id == "yours"
    store.close()
    return taken


@pytest.mark.parametrize("together", [False, True])
def test_a_lease_that_a_write_relies_on_is_nobody_elses_before_the_commit(connection: Connection, together: bool) -> None:  # noqa: FBT001
    assert not is_taken_while_a_write_relies_on_it(connection, empty_postgres_url(PINNED), together=together)


@pytest.mark.parametrize("together", [False, True])
def test_control_without_its_lock_it_would_be(connection: Connection, together: bool) -> None:  # noqa: FBT001
    url = empty_postgres_url(PINNED)
    with broken(url, r" for key share;", ";"):
        assert is_taken_while_a_write_relies_on_it(connection, url, together=together)


def somebody_waits(connection: Connection) -> bool:
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'holdfast'"
    return connection.execute(waiting).fetchone() == (1,)


@pytest.mark.parametrize("together", [False, True])
def test_a_write_that_waited_for_a_deletion_is_made(store: PostgresStore, connection: Connection, together: bool) -> None:  # noqa: FBT001
    write(store, "key", "old")
    mine = store.within(connection)
    # It has the row, and has not deleted it yet.
    mine.execute(Write(DICT, [Change("key", do="compare", expect="present")]))
    changes = [Change("key", value=raw("new")), *([Change("beside", value=raw("new"))] if together else [])]

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(store.execute, Write(DICT, changes))
        until(lambda: somebody_waits(connection))
        mine.execute(Write(DICT, [Change("key", do="delete")]))
        connection.commit()
        assert [one.because for one in writing.result(60)] == [""] * len(changes)
    assert read(store, "key") == {"key": "new"}


def is_settled(store: PostgresStore, topic: str) -> bool:
    """Whether whoever announces itself for the topic now hears of every command that comes to its end later."""
    with psycopg.connect(store.address.conninfo) as other:
        other.execute("select set_config('search_path', quote_ident(%s), true)", (store.address.schema,))
        return other.execute(own("select is_settled(array[%s])").encode(), (topic,)).fetchone() == (True,)


@pytest.mark.parametrize("of_dict", [None, DICT, "a:b:c"])
@pytest.mark.parametrize("together", [False, True])
def test_who_announces_itself_for_a_lease_learns_of_a_release_under_way(
    store: PostgresStore,
    connection: Connection,
    of_dict: str | None,
    together: bool,  # noqa: FBT001
) -> None:
    lease, other = (grant(store, key, lease_id="mine", dict=of_dict) for key in ("lock:1", "other"))
    assert is_settled(store, lease_topic(of_dict, "lock:1"))
    store.within(connection).execute(Release([name(lease), *([name(other)] if together else [])]))
    assert not is_settled(store, lease_topic(of_dict, "lock:1"))
    connection.commit()
    assert is_settled(store, lease_topic(of_dict, "lock:1"))


def test_who_announces_itself_as_a_watcher_of_a_lease_learns_of_a_grant_under_way(store: PostgresStore, connection: Connection) -> None:
    topic = watch_topic(log_topic(None, "lock"))
    assert is_settled(store, topic)
    store.within(connection).execute(Acquire(None, "lock", "me", "mine", 30.0))
    assert not is_settled(store, topic)
    connection.commit()
    assert is_settled(store, topic)


@pytest.mark.parametrize("is_one_claim", [True, False])
def test_messages_that_are_being_renewed_are_settled_once_that_is_done(
    store: PostgresStore,
    connection: Connection,
    is_one_claim: bool,  # noqa: FBT001
) -> None:
    put(store, "a", "b", "c")
    held = claim(store, 3) if is_one_claim else [*claim(store), *claim(store), *claim(store)]
    assert store.within(connection).execute(Extend([held[1].receipt], 60.0)).held == [True]
    with ThreadPoolExecutor(1) as threads:
        settling = threads.submit(settle, store, held)
        until(lambda: somebody_waits(connection))
        connection.commit()
        assert settling.result(60) == [True, True, True]
    assert store.execute(Count("jobs")).total == 0


def told_while_another_asks(store: PostgresStore, connection: Connection) -> Acquired:
    """What is answered about a lease that is held, while another who asked for it is not yet done."""
    connection.execute("select set_config('search_path', quote_ident(%s), true)", (store.address.schema,))
    connection.execute(own("select pg_advisory_xact_lock(object_lock('lease:', 'lock'))").encode())
    answer = acquire(store, lease_id="yours")
    connection.rollback()
    return answer


def test_who_meets_others_that_ask_is_told_who_was_granted_the_lease(
    store: PostgresStore, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch)
    mine = grant(store, "lock", lease_id="mine")
    answer = told_while_another_asks(store, connection)
    assert answer.lease == mine
    assert answer.ends_in_s is not None


def test_who_meets_others_that_ask_for_a_free_lease_is_told_of_nobody(store: PostgresStore, connection: Connection) -> None:
    assert told_while_another_asks(store, connection).lease.lease_id == ""
    assert acquire(store, lease_id="yours").lease.lease_id == "yours"


def test_emptying_a_queue_leaves_the_callers_lock_timeout(store: PostgresStore, connection: Connection) -> None:
    connection.execute("set local lock_timeout = '7s'")
    store.within(connection).execute(Clear("queue", "jobs"))
    assert connection.execute("show lock_timeout").fetchone() == ("7s",)


def test_a_connection_to_a_store_that_was_moved_says_where_to(store: PostgresStore, connection: Connection) -> None:
    put(store, "a")
    store.execute(Seal("redis://elsewhere", store.execute(Survey()).latest))
    connection.execute("create temporary table orders ()")
    with pytest.raises(StoreMoved, match="redis://elsewhere"):
        write(store.within(connection), "key", "new")  # type: ignore[arg-type]
    assert connection.execute("select count(*) from orders").fetchone() == (0,), "the caller's transaction goes on"


def test_a_session_that_begins_afterwards_is_told_so_by_every_command(store: PostgresStore) -> None:
    put(store, "a")
    store.execute(Seal("redis://elsewhere", store.execute(Survey()).latest))
    store.caller.pool.drain()
    changes = [Change("key", value=raw("new"))]
    commands: list[Command[Any]] = [Acquire(None, "lock", "me", "mine", 30.0), Write(DICT, changes), Read(DICT, keys=["key"])]
    for command in commands:
        with pytest.raises(StoreMoved, match="redis://elsewhere"):
            store.execute(command)


@pytest.mark.anyio
async def test_a_connection_for_tasks_says_so_too(store: PostgresStore, postgres_server: str) -> None:
    put(store, "a")
    store.execute(Seal("redis://elsewhere", store.execute(Survey()).latest))
    async with await psycopg.AsyncConnection.connect(postgres_server) as connection:
        with pytest.raises(StoreMoved, match="redis://elsewhere"):
            await store.within_async(connection).execute(Write(DICT, [Change("key", value=raw("new"))]))
