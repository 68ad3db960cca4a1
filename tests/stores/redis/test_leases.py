"""Leases on Redis: the fast path of a lease and the full rules leave the same keys behind."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import msgpack

from holdfast.commands import Acquire, Changes, Command, LeaseName, Look, Release, Renew, Together
from holdfast.errors import StoreError
from holdfast.stores.redis import RedisStore
from holdfast.testing.clock import START_US, FakeClock
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


ACTS = (("take", "a"), ("take", "b"), ("take", "c"), ("give", "b"), ("take", "d"), ("give", "a"), ("give", "d"), ("give", "c"))


def shares_kept(store: RedisStore) -> list[Any]:
    """What lies under the keys of the name, and for how many minutes it is kept."""
    _, (_, _, key, *_) = store.request(Release([NAME]))
    assert isinstance(key, str)
    name, shares, ends = store.connections.ask(("GET", key), ("HGETALL", f"{key}:shares"), ("ZRANGE", f"{key}:ends", "0", "-1"))
    minutes = [(lasts_s(store, part) + 30) // 60 for part in ("", ":shares", ":ends", ":line", ":events")]
    return [name and msgpack.decode(name), dict(zip(shares[::2], map(msgpack.decode, shares[1::2]), strict=True)), ends, minutes]


def kept_by(way: Way) -> list[Any]:
    """What the acts leave behind, one after the other."""
    clock, found = FakeClock(START_US + 1), list[Any]()
    store = RedisStore(own_redis_url(), clock=clock)
    for act, lease_id in ACTS:
        clock.advance(1.000001)
        if act == "take":
            way(store, Acquire(None, NAME.key, "me", lease_id, LEASE_S, capacity=3))
        else:
            way(store, Release([LeaseName(None, NAME.key, lease_id)]))
        found.append(shares_kept(store))
    found.append([(event.event, event.data) for event in store.execute(Changes("lease::leader")).events])
    store.close()
    return found


def test_shares_are_kept_alike_by_the_fast_path_and_the_full_rules() -> None:
    kept = kept_by(by_full_rules)
    assert kept_by(by_fast_path) == kept
    assert [len(shares) for _, shares, *_ in kept[:-1]] == [1, 2, 3, 2, 3, 2, 1, 0]


def test_control_a_share_that_is_not_counted_is_noticed() -> None:
    with broken(r"shared\.used - share\.weight", "shared.used"):
        assert kept_by(by_fast_path) != kept_by(by_full_rules)


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
