"""A watch misses and misorders nothing, whenever a transaction began and however late it commits, and no transaction holds it up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
import pytest
from msgspec import json

from holdfast.commands import Changes, Configure, Put
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, claim, item, put
from tests.postgres import empty_postgres_url, shared_postgres
from tests.testing.broken_sql import broken

QUEUE = f"queue:{JOBS}"


class Watch:
    """Reads the log again and again, each time from where it was."""

    def __init__(self, store: PostgresStore, after: int) -> None:
        self.store = store
        self.after = after
        self.indexes: list[int] = []
        self.told: list[str] = []

    def look(self) -> list[str]:
        """What is new, as `event id`."""
        page = self.store.execute(Changes(QUEUE, self.after))
        self.after = page.upto
        self.indexes += [event.index for event in page.events]
        new = [f"{event.event} {message_id}" for event in page.events for message_id in json.decode(event.data)["ids"]]
        self.told += new
        return new


class Late:
    """A transaction of a caller's own that put one message and commits when it is told to."""

    def __init__(self, store: PostgresStore, message_id: str) -> None:
        self.connection: psycopg.Connection[Any] = psycopg.connect(shared_postgres())
        store.within(self.connection).execute(Put(JOBS, [item(message_id)]))

    def commit(self) -> None:
        self.connection.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@contextmanager
def transaction_elsewhere() -> Iterator[None]:
    """A transaction of somebody else in the same database that has written and stays open."""
    with psycopg.connect(shared_postgres()) as foreign:
        foreign.execute("select pg_current_xact_id()")
        yield


def what_commits_late_is_read_once(store: PostgresStore, begin: int) -> None:
    watch = Watch(store, begin)
    with Late(store, "late") as late, Late(store, "later") as later:
        put(store, "a")
        assert watch.look() == ["put a"]
        later.commit()
        put(store, "b")
        assert sorted(watch.look()) == ["put b", "put later"]
        late.commit()
    assert watch.look() == ["put late"]
    assert watch.indexes == sorted(set(watch.indexes)), "an index says what came before"
    again = Watch(store, begin)
    again.look()
    assert (again.told, again.indexes) == (watch.told, watch.indexes), "whoever reads later reads the same"


def an_effect_comes_after_its_late_cause(store: PostgresStore, begin: int) -> None:
    watch = Watch(store, begin)
    with Late(store, "late") as late:
        put(store, "a")
        assert watch.look() == ["put a"]
        late.commit()
    claim(store, 2)
    assert watch.look() == ["put late", "claimed late", "claimed a"]


def nobody_waits_for_an_open_transaction(store: PostgresStore, begin: int) -> None:
    watch = Watch(store, begin)
    with transaction_elsewhere(), Late(store, "late") as late:
        put(store, "a")
        assert watch.look() == ["put a"]
        put(store, "b")
        assert watch.look() == ["put b"]
        late.commit()
        assert watch.look() == ["put late"]


Scenario = Callable[[PostgresStore, int], None]
SCENARIOS: list[Scenario] = [what_commits_late_is_read_once, an_effect_comes_after_its_late_cause, nobody_waits_for_an_open_transaction]


@contextmanager
def empty_queue() -> Iterator[tuple[PostgresStore, int]]:
    """A queue that is there, since whoever puts first creates it and others wait for that, and where its log stands."""
    store = PostgresStore(empty_postgres_url(" log"))
    store.execute(Configure("queue", JOBS))
    try:
        yield store, store.execute(Changes(QUEUE)).upto
    finally:
        store.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.replace("_", "-"))
def test_a_watch_reads_everything_once_and_in_order(scenario: Scenario) -> None:
    with empty_queue() as (store, begin):
        scenario(store, begin)


@pytest.mark.parametrize(
    ("scenario", "find", "instead"),
    [
        # An event keeps the number it was written with, so one that commits late lies before what was read.
        pytest.param(
            what_commits_late_is_read_once,
            r"if known\.horizon > 0 and exists",
            "if false and exists",
            id="numbers-at-the-insert",
        ),
        # Only the late one gets a new number, and so comes after its effects.
        pytest.param(
            an_effect_comes_after_its_late_cause,
            r"known, snapshot\) order by n\)",
            "known, snapshot) as late where late.n <= known.horizon order by n)",
            id="renumbers-the-late-alone",
        ),
        # Only what no running transaction can precede is shown.
        pytest.param(
            nobody_waits_for_an_open_transaction,
            r"pg_visible_in_snapshot\((?:[er]\.)?xid, snapshot\)",
            "xid < pg_snapshot_xmin(snapshot)",
            id="shows-what-is-below-the-horizon",
        ),
    ],
)
def test_a_log_that_is_numbered_otherwise_is_noticed(scenario: Scenario, find: str, instead: str) -> None:
    with broken(empty_postgres_url(" log"), find, instead), empty_queue() as (store, begin), pytest.raises(AssertionError):
        scenario(store, begin)
