"""A PostgreSQL that falls silent, with nothing closed: calls, renewals, wake-ups and closing go on."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from holdfast.commands import Acquire, LeaseName, Put
from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.stores.postgres import listening
from holdfast.stores.postgres.sessions import Session
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, ids, item, put, stats
from holdfast.testing.conformance.threads import Doing
from holdfast.testing.conformance.waiting import waiting_claim
from tests.postgres import own_postgres_url
from tests.relays import Relay, Way
from tests.sentinel_databases import until

SHORT_S = 0.3


@pytest.fixture
def url() -> str:
    return own_postgres_url()


@pytest.fixture
def relay(url: str) -> Iterator[Relay]:
    with Relay(url) as relay:
        yield relay


@pytest.fixture
def store(relay: Relay) -> Iterator[PostgresStore]:
    store = PostgresStore(relay.url)
    store.caller.answer_s = SHORT_S
    yield store
    store.close()


@pytest.mark.parametrize("ways", [(), ("to client",)], ids=["not even asked", "asked and not heard"])
def test_a_call_without_an_answer_is_made_again_on_a_new_connection_and_applied_once(
    store: PostgresStore, relay: Relay, ways: tuple[Way, ...]
) -> None:
    put(store, "before")
    relay.fall_silent(*ways)
    put(store, "after")
    assert stats(store).ready == 2


@pytest.mark.parametrize("ways", [(), ("to client",)], ids=["not even asked", "asked and not heard"])
def test_so_is_one_of_a_task(store: PostgresStore, relay: Relay, ways: tuple[Way, ...]) -> None:
    async def ask() -> None:
        tasks = store.for_tasks()
        await tasks.execute(Put(JOBS, [item("before")]))
        relay.fall_silent(*ways)
        await tasks.execute(Put(JOBS, [item("after")]))

    asyncio.run(ask())
    assert stats(store).ready == 2


def test_closing_never_waits_for_a_silent_server(store: PostgresStore, relay: Relay) -> None:
    store.caller.answer_s = 3_600.0
    waiter = waiting_claim(store)
    relay.fall_silent(new_too=True)
    Doing(lambda: put(store, "a"))
    until(lambda: not store.caller.pool._idle)
    Doing(store.close).result("closing while the server is silent")
    with pytest.raises(HoldfastError):
        waiter.result("a waiter of the store that was closed")


def test_a_lease_granted_while_a_connection_is_silent_is_renewed_too(store: PostgresStore, relay: Relay) -> None:
    put(store, "a")
    relay.fall_silent()
    keepalive = Keepalive(store, store.waiters.clock)
    hold = Hold(LeaseName(None, "late", "late"), 6.0, keepalive.now(), keepalive.now, renew_interval_s=0.2)
    store.execute(Acquire(None, "late", "me", "late", 6.0))
    keepalive.add(hold)
    end = hold.ends_at + 0.5
    until(lambda: hold.ends_at > end or hold.lost)
    assert not hold.lost
    keepalive.close()


def test_who_waits_hears_again_after_the_server_was_silent(store: PostgresStore, relay: Relay, url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(listening, "REFRESH_S", SHORT_S)
    monkeypatch.setattr(listening, "SILENT_S", SHORT_S)
    waiter = waiting_claim(store)
    relay.fall_silent()
    other = PostgresStore(url)
    put(other, "a")
    other.close()
    assert ids(waiter.result("a waiter whose connection fell silent")) == ["a"]


def test_a_store_that_falls_silent_while_it_is_opened_says_so(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Session.open

    def then_silent(*given: Any) -> Session:
        session = opened(*given)
        relay.fall_silent()
        session.answer_s = SHORT_S
        return session

    monkeypatch.setattr(Session, "open", then_silent)
    with pytest.raises(StoreUnavailable, match=r"no reply in 0\.3 s"):
        PostgresStore(relay.url)


def test_opening_a_store_that_never_answers_ends_after_the_time_that_the_url_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(StoreUnavailable, match="timeout expired"):
        PostgresStore(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/database?connect_timeout=2")


def test_a_store_that_is_cut_while_it_is_opened_raises_errors_of_ours(relay: Relay) -> None:
    for count in range(0, 5_000, 100):
        relay.cut_after = count
        # Any other error fails the test.
        with suppress(StoreUnavailable):
            PostgresStore(relay.url).close()
