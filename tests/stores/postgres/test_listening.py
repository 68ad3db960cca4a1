"""Notifications go to those who wait, to nobody else, and carry nothing: one lock of the whole server is taken for each."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.function_names import own
from holdfast.stores.postgres.listening import ANNOUNCED_AT_ONCE, Listener, channel_of
from holdfast.stores.postgres.statements import in_schema
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.waiting.waiters import Waiters
from holdfast.testing.conformance.asking import JOBS, claim, grant, put, release, settle, write
from holdfast.testing.conformance.threads import PATIENCE_S, Doing
from holdfast.testing.conformance.waiting import waiting_claim
from tests.postgres import own_postgres_url


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(own_postgres_url())
    yield store
    store.close()


class Ear:
    """Hears whatever the store's channel tells."""

    def __init__(self, store: PostgresStore) -> None:
        self.channel = channel_of(store.address.schema)
        self._connection = psycopg.connect(store.address.conninfo, autocommit=True)
        self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(self.channel)))

    def heard(self) -> list[str]:
        """What was told so far: notifications come in the order of the commits, and the last one is our own."""
        self.tell("end")
        told: list[str] = []
        for notice in self._connection.notifies(timeout=60):
            if notice.payload == "end":
                break
            told.append(notice.payload)
        return told

    def tell(self, payload: str) -> None:
        """Say something on the channel, as anybody can."""
        self._connection.execute("select pg_notify(%s, %s)", (self.channel, payload))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def ear(store: PostgresStore) -> Iterator[Ear]:
    ear = Ear(store)
    yield ear
    ear.close()


def test_where_nobody_waits_nobody_is_notified(store: PostgresStore, ear: Ear) -> None:
    put(store, "a", "b", key='"k"')
    put(store, "c")
    settle(store, claim(store), to="ready")
    settle(store, claim(store, 3))
    write(store, "key", 1)
    release(store, grant(store, "lock"))
    assert ear.heard() == []


def test_a_notification_says_what_for_and_how_many_and_no_more(store: PostgresStore, ear: Ear) -> None:
    waiter = waiting_claim(store)
    put(store, "secret", "another")
    assert [message.id for message in waiter.result("a claim that waited")] == ["secret"]
    assert ear.heard() == [f"2:queue:{JOBS}"]


@pytest.mark.parametrize(
    "payload", ["", "end", "-1:queue:jobs", "x:queue:jobs", "\u00b2:queue:jobs", "9" * 5_000 + ":queue:jobs", "9" * 19 + ":queue:jobs"]
)
def test_what_others_notify_of_harms_nobody_who_waits(store: PostgresStore, ear: Ear, payload: str) -> None:
    waiter = waiting_claim(store)
    ear.tell(payload)
    put(store, "a")
    assert [message.id for message in waiter.result("a claim that waited")] == ["a"]
    assert "holdfast-listener" in [thread.name for thread in threading.enumerate()]


def test_whoever_waits_on_more_than_a_busy_listener_takes_in_is_not_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(Listener, "_run", lambda *_: is_over.wait())
    listener = Listener(parse("postgresql://localhost/nowhere"), Waiters())
    asking = Doing(lambda: [listener.want(f"key:q:{number}") for number in range(70_000)])
    try:
        assert len(asking.result("asking for topics")) == 70_000
    finally:
        is_over.set()
        listener.close()


def test_more_topics_than_are_announced_at_once_are_all_announced(store: PostgresStore) -> None:
    wanted = [store._listener.want(f"key:{JOBS}:{number}") for number in range(ANNOUNCED_AT_ONCE * 2 + 1)]
    assert [each.result(PATIENCE_S) for each in wanted if each is not None] == [None] * len(wanted)


def test_the_many_names_that_a_topic_may_begin_with_take_few_locks(store: PostgresStore) -> None:
    with psycopg.connect(store.address.conninfo) as connection:
        settled = in_schema("select {}.is_settled(%s)", store.address.schema)
        connection.execute(settled, (["key:q" + ":" * 600, "lease:d" + ":" * 600],))
        row = connection.execute("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()").fetchone()
        assert row is not None
        assert row[0] <= 24


@pytest.mark.parametrize(
    ("topic", "locked"), [("key:a:b:c", ("queue", "a:b")), ("lease:a:b:c", ("dict", "a")), ("room:a:b", ("queue", "a:b"))]
)
def test_a_topic_is_settled_once_nobody_has_what_it_may_be_about(store: PostgresStore, topic: str, locked: tuple[str, str]) -> None:
    settled = in_schema("select {}.is_settled(%s)", store.address.schema)
    with psycopg.connect(store.address.conninfo) as other, psycopg.connect(store.address.conninfo, autocommit=True) as connection:
        other.execute(sql.SQL("set search_path to {}").format(sql.Identifier(store.address.schema)))
        other.execute(own("select lock_object(%s, %s, alone => true)").encode(), locked)
        assert connection.execute(settled, ([topic],)).fetchone() == (False,)
        other.rollback()
        assert connection.execute(settled, ([topic],)).fetchone() == (True,)
