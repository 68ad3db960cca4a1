"""Leases with capacity under threads: some order of what they did explains every answer they got."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands import Acquire, LeaseName, Release, shares
from holdfast.ids import new_id
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.linearizability import NEVER_ANSWERED, Operation, capacity_step, is_linearizable
from tests.stores_by_name import factory_of

THREADS = 4
CALLS = 25
CAPACITY = 3
NOTHING: frozenset[tuple[str, int]] = frozenset()

EVERYWHERE = ["memory", "sqlite", "lmdb", *(pytest.param(kind, marks=pytest.mark.verify) for kind in ("redis", "postgres", "http"))]


@pytest.fixture(params=EVERYWHERE)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = factory_of(request.param, tmp_path).make(FakeClock())
    yield made
    made.close()


class Caller:
    """Takes and gives back shares of one name, and writes down what it was answered."""

    def __init__(self, store: Store, name: str, seed: int) -> None:
        self.store, self.name = store, name
        self.chance = random.Random(seed)
        self.mine: list[str] = []
        self.seen: list[Operation] = []

    def run(self) -> None:
        for _ in range(CALLS):
            if self.mine and self.chance.random() < 0.5:
                self.release()
            else:
                self.acquire()

    def acquire(self) -> None:
        lease_id, weight = new_id(), self.chance.choice((1, 1, 2))
        called = time.monotonic()
        acquired = self.store.execute(Acquire(None, self.name, "h", lease_id, 9_999.0, capacity=CAPACITY, weight=weight))
        is_mine = acquired.lease.lease_id == lease_id
        self.seen.append(Operation(called, time.monotonic(), "acquire", (lease_id, weight), is_mine))
        if is_mine:
            self.mine.append(lease_id)

    def release(self) -> None:
        lease_id = self.mine.pop(self.chance.randrange(len(self.mine)))
        called = time.monotonic()
        (was_held,) = self.store.execute(Release([LeaseName(None, self.name, lease_id)])).held
        self.seen.append(Operation(called, time.monotonic(), "release", lease_id, was_held))


def history(store: Store, seed: int) -> list[Operation]:
    callers = [Caller(store, f'"gpu {seed}"', 100 * seed + number) for number in range(THREADS)]
    threads = [threading.Thread(target=caller.run) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [operation for caller in callers for operation in caller.seen]


@pytest.mark.parametrize("seed", range(3))
def test_an_order_of_the_calls_explains_every_grant_and_refusal(store: Store, seed: int) -> None:
    seen = history(store, seed)
    assert any(operation.kind == "acquire" and operation.answer is False for operation in seen)
    assert is_linearizable(seen, NOTHING, capacity_step(CAPACITY))


def test_control_a_store_that_grants_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def without_limit(*_: Any) -> int:
        return -1_000

    monkeypatch.setattr(shares, "_ahead", without_limit)
    store = factory_of("memory", tmp_path).make(FakeClock())
    assert not is_linearizable(history(store, 1), NOTHING, capacity_step(CAPACITY))
    store.close()


def test_an_answer_that_never_came_may_have_taken_effect_or_not() -> None:
    lost = Operation(0, NEVER_ANSWERED, "acquire", ("a", 3))
    for granted in (True, False):
        assert is_linearizable([lost, Operation(1, 2, "acquire", ("b", 1), granted)], NOTHING, capacity_step(CAPACITY))
