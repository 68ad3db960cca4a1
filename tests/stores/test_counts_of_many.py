"""Counts of more than 10,000 messages of two kinds: those that are due and those that are not, leases that last and leases that ended."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import claim, put, stats
from tests.stores_by_name import factory_of

BATCH = 5_250
DUE, DELAYED = 3 * BATCH, 2 * BATCH
"""Either more than the 10,000 up to which parts were once counted."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def store(kind: str, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    opened = factory_of(kind, tmp_path).make(clock)
    put_many(opened, DUE, delay_s=0)
    put_many(opened, DELAYED, delay_s=60)
    yield opened
    opened.close()


def put_many(store: Store, count: int, *, delay_s: float) -> None:
    for start in range(0, count, BATCH):
        put(store, *(f"{delay_s}-{number}" for number in range(start, start + BATCH)), delay_s=delay_s)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "lmdb", "postgres", "redis"], indirect=True)
def test_many_that_are_due_and_many_that_are_not_are_counted_exactly(store: Store, clock: FakeClock) -> None:
    assert (stats(store).ready, stats(store).delayed) == (DUE, DELAYED)
    for lease_s in (10, 10, 60):
        assert len(claim(store, BATCH, lease_s=lease_s)) == BATCH
    clock.advance(10)
    assert (stats(store).ready, stats(store).leased, stats(store).delayed) == (2 * BATCH, BATCH, DELAYED)
    clock.advance(50)
    assert (stats(store).ready, stats(store).leased, stats(store).delayed) == (DUE + DELAYED, 0, 0)


def test_control_a_bound_on_what_is_counted_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def up_to_a_bound(total: int, part: Callable[[int], int], rest: Callable[[int], int]) -> int:
        return total - others if (others := rest(10_000)) < 10_000 else part(10_000)

    monkeypatch.setattr("holdfast.stores.sqlite.counts.size_of_part", up_to_a_bound)
    assert stats(store).delayed == 10_000, "the test above would not notice parts that are counted up to a bound"
