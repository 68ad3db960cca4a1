"""Whatever a step reads is of one moment, and a watch goes on from there, however long the step waits in between."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from msgspec import json

from holdfast.commands import Browse, Change, Changes, Put, Read, Together, Write
from holdfast.commands.topics import dict_topic
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, item, put, raw, write
from holdfast.testing.conformance.threads import Doing
from tests.postgres import own_postgres_url
from tests.sentinel_databases import until
from tests.testing.broken_sql import broken

Connection = psycopg.Connection[Any]

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'holdfast'"


@pytest.fixture
def url() -> str:
    return own_postgres_url()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


@pytest.fixture
def connection(store: PostgresStore) -> Iterator[Connection]:
    with psycopg.connect(store.address.conninfo) as connection:
        connection.execute("select set_config('search_path', quote_ident(%s), false)", (store.address.schema,))
        yield connection


def meanwhile(store: PostgresStore, connection: Connection, step: Together, act: Callable[[], object]) -> list[Any]:
    """The answers to a step during which somebody acts: it waits for its turn at the log of the queue, which we have."""
    connection.execute("select from topics where topic = 'queue:jobs' for update")
    reading = Doing(lambda: store.execute(step))
    until(lambda: connection.execute(WAITING).fetchone() == (1,))
    act()
    connection.commit()
    return reading.result("a step of reads")


def reads_half(store: PostgresStore, connection: Connection, *writes: Put) -> bool:
    """Whether a step sees one of two entries before somebody changed both, and the other after it."""

    def write_both(number: int) -> None:
        store.execute(Together([Write(name, [Change("n", value=raw(number))]) for name in ("left", "right")]))

    write_both(1)
    put(store, "a")
    store.execute(Browse(JOBS))
    step = Together([Read("left", keys=["n"]), Browse(JOBS), Read("right", keys=["n"]), *writes])
    left, _, right, *_ = meanwhile(store, connection, step, lambda: write_both(2))
    return bool(left.entries[0].value != right.entries[0].value)


@pytest.mark.parametrize("writes", [[], [Put("other", [item("b")])]], ids=["reads alone", "with a write"])
def test_a_step_reads_everything_at_one_moment(store: PostgresStore, connection: Connection, writes: list[Put]) -> None:
    assert not reads_half(store, connection, *writes)


def first_events_seen(store: PostgresStore, connection: Connection) -> list[str]:
    """The keys of a dict as a reader learns of them: what it read, and the events after that. One was written first and comes last."""
    put(store, "a")
    store.execute(Browse(JOBS))
    write(store, "old", 0, dict="new")
    # As a copy leaves it: with its entries and without a log.
    connection.execute("delete from events where topic = 'dict:new'")
    connection.commit()
    with psycopg.connect(store.address.conninfo) as late:

        def write_two() -> None:
            store.within(late).execute(Write("new", [Change("late", value=raw(1))]))
            write(store, "early", 2, dict="new")

        entries, _ = meanwhile(store, connection, Together([Read("new", anchor=True, limit=10), Browse(JOBS)]), write_two)
        late.commit()
    events = store.execute(Changes(dict_topic("new"), after=entries.index)).events
    return [entry.key for entry in entries.entries] + [json.decode(event.data)["key"] for event in events]


def test_a_reader_of_a_log_without_events_misses_nothing(store: PostgresStore, connection: Connection) -> None:
    assert first_events_seen(store, connection) == ["early", "old", "late"]


def test_control_who_takes_no_turn_at_such_a_log_would_miss_an_event(store: PostgresStore, connection: Connection, url: str) -> None:
    with broken(url, r"t\.floor is null and", "false and"):
        assert first_events_seen(store, connection) == ["early", "old"]


def test_changes_in_a_step_are_those_of_its_moment(store: PostgresStore, connection: Connection) -> None:
    write(store, "k", 1)
    put(store, "a")
    store.execute(Browse(JOBS))
    step = Together([Changes(dict_topic("settings")), Browse(JOBS), Read("settings", keys=["k"])])
    changes, _, entries = meanwhile(store, connection, step, lambda: write(store, "k", 2))
    assert [json.decode(event.data)["value"] for event in changes.events][-1] == json.decode(entries.entries[0].value)
