"""Leases on Redis: the fast path of a lease and the full rules leave the same keys behind."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.commands import Acquire, Changes, Command, LeaseName, Look, Release, Renew, Together
from holdfast.errors import StoreError
from holdfast.stores.redis import RedisStore
from tests.servers import own_redis_url
from tests.testing.broken_lua import broken

DAY_S = 86_400
LEASE_S = 1_000.0
NAME = LeaseName(None, "leader", "mine")

OnLeases = Acquire | Renew | Release
Way = Callable[[RedisStore, OnLeases], Any]


def by_fast_path(store: RedisStore, command: Command[Any]) -> Any:
    return store.execute(command)


def by_full_rules(store: RedisStore, command: OnLeases) -> Any:
    """A step of one command, which has no fast path."""
    return store.execute(Together([command]))[0]


@pytest.fixture
def store() -> Iterator[RedisStore]:
    store = RedisStore(own_redis_url())
    yield store
    store.close()


@pytest.fixture(params=[by_fast_path, by_full_rules])
def way(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


def lasts_s(store: RedisStore, part: str = "") -> int:
    """How long a key of the lease still lasts; negative where it is not there or has no end."""
    _, (_, _, key, *_) = store.request(Release([NAME]))
    assert isinstance(key, str)
    (seconds,) = store.connections.ask(("TTL", key + part))
    assert isinstance(seconds, int)
    return seconds


def acquire(store: RedisStore, way: Way, lease_s: float | None = LEASE_S) -> None:
    assert way(store, Acquire(None, NAME.key, "me", NAME.lease_id, lease_s)).lease.lease_id == NAME.lease_id


def test_a_lease_lasts_a_day_longer_than_it_was_taken_for_and_its_log_two(store: RedisStore, way: Way) -> None:
    acquire(store, way)
    assert DAY_S < lasts_s(store) <= DAY_S + LEASE_S
    assert 2 * DAY_S < lasts_s(store, ":events") <= 2 * DAY_S + LEASE_S


@pytest.mark.parametrize("longer_s", [2 * LEASE_S, 100 * LEASE_S])
def test_a_log_outlasts_a_renewed_lease_by_a_day(store: RedisStore, way: Way, longer_s: float) -> None:
    acquire(store, way)
    way(store, Renew([NAME], longer_s))
    assert DAY_S + longer_s - 60 < lasts_s(store) <= DAY_S + longer_s
    assert DAY_S + longer_s <= lasts_s(store, ":events") <= 2 * DAY_S + longer_s


@pytest.mark.parametrize("lease_s", [LEASE_S, 10 * DAY_S])
def test_a_lease_that_is_given_back_leaves_its_log_for_a_day_or_two(store: RedisStore, way: Way, lease_s: float) -> None:
    acquire(store, way, lease_s)
    assert way(store, Release([NAME])).held == [True]
    assert lasts_s(store) == -2
    assert DAY_S - 60 < lasts_s(store, ":events") <= 2 * DAY_S + LEASE_S


def test_a_lease_without_end_never_expires_and_neither_does_its_log(store: RedisStore, way: Way) -> None:
    acquire(store, way, None)
    assert (lasts_s(store), lasts_s(store, ":events")) == (-1, -1)


def test_a_text_of_any_length_is_kept_whole(store: RedisStore, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holders are limited before they come here; the record must not depend on it."""
    monkeypatch.setattr("holdfast.commands.leases.PLAIN", ())
    holder = "x" * 65_540
    assert way(store, Acquire(None, "leader", holder, "mine", LEASE_S)).lease.holder == holder
    (found,) = store.execute(Look(None, ["leader"])).leases
    assert found is not None
    assert found.lease.holder == holder
    assert way(store, Release([NAME])).held == [True]
    assert [event.event for event in store.execute(Changes("lease::leader")).events] == ["acquired", "released"]


def test_control_a_length_of_two_bytes_would_leave_a_record_that_nobody_can_read(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.commands.leases.PLAIN", ())
    with broken(r"#words < 65536", "true"):
        store.execute(Acquire(None, "leader", "x" * 65_540, "mine", LEASE_S))
        with pytest.raises(StoreError, match="returned an error"):
            store.execute(Look(None, ["leader"]))
