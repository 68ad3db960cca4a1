"""Fairness over many messages: weights over ten thousand claims, and a newcomer behind a hundred thousand messages of another."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from holdfast.commands import Claim, Configure, Item, Put
from holdfast.commands.lanes import Given
from holdfast.commands.one_each import OneEach
from holdfast.ids import new_id
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of
from tests.testing.lane_mutants import with_the_old_turn, without_new_credit

CLAIMS = 10_000
BACKLOG = 100_000
AT_A_TIME = 5_000
WEIGHTS = {"a": 5, "b": 3, "c": 1}
WITHIN = 0.01

LONG = [pytest.param(kind, marks=pytest.mark.verify) for kind in ("sqlite", "lmdb", "redis", "postgres", "http")]
BATCHES = [
    *(("memory", batch) for batch in (1, 10, 64)),
    ("sqlite", 64),
    *(pytest.param(kind, 1, marks=pytest.mark.verify) for kind in ("sqlite", "lmdb", "redis", "postgres", "http")),
    *(pytest.param(kind, 10, marks=pytest.mark.verify) for kind in ("sqlite", "lmdb", "redis", "postgres", "http")),
    *(pytest.param(kind, 64, marks=pytest.mark.verify) for kind in ("lmdb", "redis", "postgres", "http")),
]


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = factory_of(request.param, tmp_path).make(FakeClock())
    yield made
    made.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Store]:
    made = factory_of("memory", tmp_path).make(FakeClock())
    yield made
    made.close()


def put(store: Store, group: str, count: int) -> None:
    for start in range(0, count, AT_A_TIME):
        store.execute(Put("jobs", [Item(new_id(), Raw(b"1"), group=group) for _ in range(min(AT_A_TIME, count - start))]))


def furthest_from_its_weight(store: Store, batch: int, claims: int = CLAIMS) -> float:
    """How far the share of a group was from its weight over all claims, as a share of what it was to get; each has twice as much."""
    store.execute(Configure("queue", "jobs", groups="fair"))
    whole = sum(WEIGHTS.values())
    for group, weight in WEIGHTS.items():
        store.execute(Configure("queue", "jobs", group=group, weight=weight))
        put(store, group, 2 * claims * weight // whole)
    served: Counter[str | None] = Counter()
    while (left := claims - served.total()) > 0:
        messages = store.execute(Claim("jobs", "w", 9_999.0, min(batch, left))).messages
        assert messages, "the queue was empty before all claims were made"
        served.update(message.group for message in messages)
    return max(abs(served[group] * whole / (claims * weight) - 1) for group, weight in WEIGHTS.items())


@pytest.mark.parametrize(("store", "batch"), BATCHES, indirect=["store"])
def test_weights_are_kept_within_one_percent_over_ten_thousand_claims(store: Store, batch: int) -> None:
    assert furthest_from_its_weight(store, batch) <= WITHIN


@pytest.mark.parametrize("batch", [1, 10])
@pytest.mark.parametrize("careless", [with_the_old_turn, without_new_credit])
def test_control_turns_and_credits_that_are_not_renewed_are_unfair(
    monkeypatch: pytest.MonkeyPatch, memory: Store, careless: Any, batch: int
) -> None:
    served: Any = Given.served
    monkeypatch.setattr(Given, "served", lambda given, token: careless(served, given, token))
    assert furthest_from_its_weight(memory, batch, 900) > 5 * WITHIN


def claims_until_the_newcomer(store: Store, backlog: int) -> int:
    """After how many claims of one message somebody is served who came behind so many messages of another."""
    store.execute(Configure("queue", "jobs", groups="fair"))
    put(store, "first", backlog)
    store.execute(Claim("jobs", "w", 9_999.0, 10))
    put(store, "new", 1)
    for count in range(1, 100):
        (message,) = store.execute(Claim("jobs", "w", 9_999.0)).messages
        if message.group == "new":
            return count
    return 100


@pytest.mark.parametrize("store", ["memory", *LONG], indirect=True)
def test_a_newcomer_behind_a_hundred_thousand_messages_is_served_within_two_claims(store: Store) -> None:
    assert claims_until_the_newcomer(store, BACKLOG) <= 2


def test_control_a_backlog_that_keeps_its_turn_holds_the_newcomer_up(monkeypatch: pytest.MonkeyPatch, memory: Store) -> None:
    served: Any = OneEach.served
    monkeypatch.setattr(OneEach, "served", lambda each, token: [replace(lane, turn=1) for lane in served(each, token)])
    assert claims_until_the_newcomer(memory, 1_000) > 2
