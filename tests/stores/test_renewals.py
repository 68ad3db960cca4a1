"""Renewals when a server falls silent, with nothing closed: they go through connections of their own, and give up in time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands import Acquire, LeaseName, Renew
from holdfast.connect import connect
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from tests.relays import Relay
from tests.sentinel_databases import until
from tests.server.serving import Served
from tests.stores_by_name import url_of

SHORT_S = 0.3


@pytest.fixture(params=["postgres", "redis", "http"])
def relay(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Relay]:
    if request.param != "http":
        with Relay(url_of(request.param, tmp_path)) as relay:
            yield relay
        return
    served = Served(MemoryStore())
    with Relay(served.url) as relay:
        yield relay
    served.close()


@pytest.fixture
def store(relay: Relay) -> Iterator[Store]:
    store = connect(relay.url)
    yield store
    store.close()


def leased(store: Store, keepalive: Keepalive, name: str) -> Hold:
    hold = Hold(LeaseName(None, name, name), 6.0, keepalive.now(), keepalive.now, renew_interval_s=0.2)
    store.execute(Acquire(None, name, "me", name, 6.0))
    keepalive.add(hold)
    return hold


def test_a_silent_connection_loses_no_lease(store: Store, relay: Relay) -> None:
    keepalive = Keepalive(store, store.waiters.clock)
    hold = leased(store, keepalive, "a")
    first = hold.renew_at
    until(lambda: hold.renew_at > first)
    relay.fall_silent()
    end = hold.ends_at + 0.5
    until(lambda: hold.ends_at > end or hold.lost)
    assert not hold.lost
    keepalive.close()


def test_a_renewal_is_tried_once_and_for_as_long_as_its_caller_says(store: Store, relay: Relay) -> None:
    renewal: Any = Renew([LeaseName(None, "a", "a")], 6.0)
    renewer = store.for_renewals()
    assert renewer.execute(renewal, 60.0).leases == [None]
    relay.fall_silent(new_too=True)
    for _ in range(2):
        with pytest.raises((OutcomeUnknown, StoreUnavailable)):
            renewer.execute(renewal, SHORT_S)
    renewer.close()
