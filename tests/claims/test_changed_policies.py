"""Policies that change while messages are there: up to a bound in one step, and a rate whatever the wall clock does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Configure, Count, Groups, Item, Put, Settle, rebuilding
from holdfast.errors import Refused
from holdfast.ids import new_id
from holdfast.rates import Rate
from holdfast.stores import Store
from holdfast.testing.claim_log import Claiming, Fact, facts_of, over_limit, over_rate
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of

EVERYWHERE = ["memory", "sqlite", "lmdb", *(pytest.param(kind, marks=pytest.mark.verify) for kind in ("redis", "postgres"))]
RATE = Rate(1, per_s=1.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=EVERYWHERE)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    made = factory_of(request.param, tmp_path).make(clock)
    yield made
    made.close()


def put(store: Store, count: int, groups: int = 10) -> None:
    store.execute(Put("jobs", [Item(new_id(), Raw(b"1"), group=f"g{number % groups}") for number in range(count)]))


def test_ten_thousand_messages_get_groups_in_one_step_and_one_more_is_refused(store: Store) -> None:
    put(store, rebuilding.REBUILT)
    put(store, 1)
    with pytest.raises(Refused, match="move them to a new queue"):
        store.execute(Configure("queue", "jobs", groups="fair"))
    assert store.execute(Count("jobs")).ready == rebuilding.REBUILT + 1
    (message,) = store.execute(Claim("jobs", "w", 60.0, take=True)).messages
    assert message.group == "g0"
    store.execute(Configure("queue", "jobs", groups="fair"))
    claimed = store.execute(Claim("jobs", "w", 600.0, 20)).messages
    assert sorted({one.group or "" for one in claimed}) == sorted(f"g{number}" for number in range(10))


def drain(store: Store, limit: int) -> None:
    while messages := store.execute(Claim("jobs", "w", 60.0, limit)).messages:
        store.execute(Settle([message.receipt for message in messages]))


@pytest.mark.parametrize(
    ("first", "then", "group_limit"),
    [
        ({"groups": "fair"}, {"groups": "strict"}, 1),
        ({"groups": "fair", "group_limit": 4}, {"group_limit": 2}, 2),
        ({"groups": "fair", "group_limit": 1}, {"group_limit": 3}, 3),
        ({"groups": "strict"}, {"groups": "fair", "group_limit": 2}, 2),
    ],
)
def test_a_mode_or_limit_that_changes_under_claims_is_kept_once_they_ended(
    store: Store, clock: FakeClock, first: dict[str, Any], then: dict[str, Any], group_limit: int
) -> None:
    store.execute(Configure("queue", "jobs", **first))
    put(store, 60, 4)
    held = store.execute(Claim("jobs", "w", 60.0, 12)).messages
    store.execute(Configure("queue", "jobs", **then))
    store.execute(Settle([message.receipt for message in held[::2]]))
    clock.advance(61.0)
    store.execute(Claim("jobs", "w", 60.0, 1))
    before = len(facts_of(store, "jobs"))
    drain(store, 20)
    assert over_limit(facts_of(store, "jobs")[before:], group_limit=group_limit) == []
    clock.advance(61.0)
    drain(store, 20)
    assert store.execute(Count("jobs")).total == 0
    assert store.execute(Groups("jobs")).lanes == []


def claims_beside_a_clock_that_steps(store: Store, clock: FakeClock) -> list[Fact]:
    """When messages were handed out under a rate, by a clock that does not step, while the wall clock does."""
    store.execute(Configure("queue", "jobs", rate=RATE))
    put(store, 60)
    facts, passed = list[Fact](), 0.0
    for turn in range(100):
        facts += [
            Claiming(message.id, "", round(passed * 1_000_000), "w") for message in store.execute(Claim("jobs", "w", 600.0, 5)).messages
        ]
        clock.advance(0.25)
        passed += 0.25
        clock.step_wall(3_600.0 if turn % 10 == 5 else -1_800.0 if turn % 10 == 8 else 0.0)
    return facts


def test_a_rate_is_kept_whatever_the_wall_clock_does(store: Store, clock: FakeClock) -> None:
    facts = claims_beside_a_clock_that_steps(store, clock)
    assert over_rate(facts, RATE) == []
    assert len(facts) == 25


def test_control_a_rate_by_a_clock_that_steps_is_passed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now_us = FakeClock.now_us
    monkeypatch.setattr(FakeClock, "now_us", lambda clock: now_us(clock) + clock.wall_offset_us())
    clock = FakeClock()
    store = factory_of("memory", tmp_path).make(clock)
    assert over_rate(claims_beside_a_clock_that_steps(store, clock), RATE) != []
    store.close()
