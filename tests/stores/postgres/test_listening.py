"""Notifications go to those who wait, to nobody else, and carry nothing: one lock of the whole server is taken for each."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from holdfast.stores.postgres.listening import channel_of
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, claim, grant, put, release, settle, write
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


@pytest.mark.parametrize("payload", ["", "end", "-1:queue:jobs", "x:queue:jobs", "\u00b2:queue:jobs"])
def test_what_others_notify_of_harms_nobody_who_waits(store: PostgresStore, ear: Ear, payload: str) -> None:
    waiter = waiting_claim(store)
    ear.tell(payload)
    put(store, "a")
    assert [message.id for message in waiter.result("a claim that waited")] == ["a"]
