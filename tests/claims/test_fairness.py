"""Fair groups, strict groups, limits and rates by a queue's log, on every store: small forms of the long runs in tests/verify."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Configure, Count, Groups, Item, Put, Settle, lanes
from holdfast.ids import new_id
from holdfast.rates import Rate
from holdfast.records import Message
from holdfast.records.policies import Lane
from holdfast.stores import Store
from holdfast.testing.claim_log import facts_of, out_of_order, over_limit, over_rate, shares, unfair
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of

EVERYWHERE = ["memory", "sqlite", "lmdb", *(pytest.param(kind, marks=pytest.mark.verify) for kind in ("redis", "postgres", "http"))]
WEIGHTS = {"a": 5, "b": 3, "c": 1}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=EVERYWHERE)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    made = factory_of(request.param, tmp_path).make(clock)
    yield made
    made.close()


def put(store: Store, group: str, count: int) -> None:
    store.execute(Put("jobs", [Item(new_id(), Raw(b"1"), group=group) for _ in range(count)]))


def claim(store: Store, limit: int = 1) -> list[Message]:
    return store.execute(Claim("jobs", "w", 60.0, limit)).messages


def drain(store: Store, limit: int = 1, most: int = 10_000) -> None:
    """Claim and acknowledge until nothing is left, or so often."""
    for _ in range(most):
        if not (messages := claim(store, limit)):
            return
        store.execute(Settle([message.receipt for message in messages]))


def weighted(store: Store) -> None:
    store.execute(Configure("queue", "jobs", groups="fair"))
    for group, weight in WEIGHTS.items():
        store.execute(Configure("queue", "jobs", group=group, weight=weight))
        put(store, group, 50 * weight)


@pytest.mark.parametrize("batch", [1, 4, 10])
def test_shares_are_exact_by_weight_one_at_a_time_and_in_batches(store: Store, batch: int) -> None:
    weighted(store)
    for _ in range(270 // batch):
        claim(store, batch)
    served = shares(facts_of(store, "jobs"))
    total = sum(served.values())
    assert all(abs(served[group] - total * weight / 9) <= weight for group, weight in WEIGHTS.items()), served
    if batch == 1:
        assert unfair(facts_of(store, "jobs"), WEIGHTS) == []


def test_a_newcomer_is_served_within_one_round(store: Store) -> None:
    store.execute(Configure("queue", "jobs", groups="fair"))
    for group in "abc":
        put(store, group, 20)
    claim(store, 7)
    put(store, "new", 1)
    served = [message.group for _ in range(4) for message in claim(store)]
    assert "new" in served


def drip(store: Store) -> float:
    """The share of a group that puts one message at a time, beside one with a backlog."""
    store.execute(Configure("queue", "jobs", groups="fair"))
    put(store, "backlog", 300)
    put(store, "drip", 1)
    got = 0
    for _ in range(200):
        (message,) = claim(store)
        store.execute(Settle([message.receipt]))
        if message.group == "drip":
            got += 1
            put(store, "drip", 1)
    return got / 200


def test_a_group_that_puts_one_at_a_time_gets_its_share_and_no_more(store: Store) -> None:
    assert 0.45 <= drip(store) <= 0.55


def test_control_newcomers_at_the_front_would_get_more_than_their_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refreshed: Any = lanes.refreshed

    def at_the_front(lane: Lane, *rest: Any) -> Lane:
        moved: Lane = refreshed(lane, *rest[:-1], 1)
        return moved

    monkeypatch.setattr(lanes, "refreshed", at_the_front)
    store = factory_of("memory", tmp_path).make(FakeClock())
    assert drip(store) > 0.9
    store.close()


def test_strict_groups_keep_their_order_through_failures_and_expiries(store: Store, clock: FakeClock) -> None:
    store.execute(Configure("queue", "jobs", groups="strict"))
    for group in "abc":
        put(store, group, 10)
    for turn in range(200):
        messages = claim(store, 2)
        for message in messages:
            match (turn + message.n) % 5:
                case 0:
                    store.execute(Settle([message.receipt], "ready", "back", counts=True, delay_s=1.0))
                case 1:
                    pass  # Forgotten: its lease ends.
                case _:
                    store.execute(Settle([message.receipt]))
        clock.advance(1.5 if turn % 3 else 61.0)
    clock.advance(100.0)
    drain(store)
    facts = facts_of(store, "jobs")
    assert out_of_order(facts) == []
    assert store.execute(Count("jobs")).total == 0
    assert store.execute(Groups("jobs")).lanes == []


def test_a_limit_holds_at_every_moment_and_nothing_is_left_behind(store: Store, clock: FakeClock) -> None:
    store.execute(Configure("queue", "jobs", groups="fair", group_limit=2, limit=5))
    for group in "abcdef":
        put(store, group, 10)
    for turn in range(60):
        for message in claim(store, 4):
            if (turn + message.n) % 4:
                store.execute(Settle([message.receipt]))
        clock.advance(61.0 if turn % 5 == 4 else 0.1)
    clock.advance(100.0)
    drain(store)
    assert over_limit(facts_of(store, "jobs"), 5, group_limit=2) == []
    assert store.execute(Groups("jobs")).lanes == []


def test_a_rate_holds_in_every_window(store: Store, clock: FakeClock) -> None:
    rate = Rate(10, per_s=1.0, burst=3)
    store.execute(Configure("queue", "jobs", rate=rate))
    put(store, "a", 60)
    for turn in range(200):
        claim(store, 5)
        clock.advance(0.03 + 0.02 * (turn % 3))
    assert over_rate(facts_of(store, "jobs"), rate) == []
    assert store.execute(Count("jobs")).leased == 60
