"""From every store to every store, by the suite's own measure."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands import Browse
from holdfast.stores import Store
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.redis import RedisStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import START_US, FakeClock
from holdfast.testing.conformance.asking import JOBS, drain, put
from holdfast.testing.conformance.contents import contents, fill
from holdfast.testing.conformance.copying import copy
from holdfast.testing.postgres import PinnedPostgresStore
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url

KINDS: dict[str, Callable[[Path, FakeClock], Store]] = {
    "memory": lambda _, clock: MemoryStore(clock=clock),
    "sqlite": lambda path, clock: SqliteStore(path, clock=clock, durability="process"),
    "lmdb": lambda path, clock: LmdbStore(path, clock=clock, durability="process"),
    "redis": lambda _, clock: RedisStore(own_redis_url(), clock=clock),
    "postgres": lambda path, clock: PinnedPostgresStore(empty_postgres_url(path.name), clock),
}

WALL_CLOCKS = ("redis", "postgres")
"""Stores whose clock never shows a moment before 1970."""


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    clock = FakeClock()
    store = KINDS[request.param](tmp_path / "source", clock)
    fill(store, clock)
    yield store
    store.close()


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    clock = FakeClock(START_US + 5_000_000) if request.param in WALL_CLOCKS else FakeClock(start_us=1_000_000)
    store = KINDS[request.param](tmp_path / "target", clock)
    yield store
    store.close()


def test_everything_arrives_as_it_was(source: Store, target: Store) -> None:
    before = contents(source)
    copy(source, target, page=3)
    assert contents(target) == before


def test_what_remains_of_the_time_in_which_a_key_is_unique_is_carried_over(source: Store, target: Store) -> None:
    put(source, "once", key='"once"', unique_for_s=60)
    for store in (source, target):
        advance(store, 40)
    copy(source, target)
    drain(target)
    advance(target, 19)
    assert put(target, "again", key='"once"', unique_for_s=60).ids == ["once"]
    advance(target, 1)
    assert put(target, "later", key='"once"', unique_for_s=60).created == [True]


def test_what_arrived_is_handed_out_in_the_order_of_the_source(source: Store, target: Store) -> None:
    copy(source, target)
    assert drain(target) == ["failing", "urgent", "plain 1", "plain 2", "large", "behind it", "to be started", "low"]


def test_what_is_put_afterwards_comes_behind_what_arrived(source: Store, target: Store) -> None:
    copy(source, target)
    last = max(message.n for message in target.execute(Browse(JOBS)).messages)
    put(target, "one")
    put(target, "two", "three")
    put(target, "four", key='"four"')
    found = target.execute(Browse(JOBS, ids=["one", "two", "three", "four"])).messages
    numbers = [last, *(message.n for message in found)]
    assert numbers == sorted(set(numbers))


def test_there_and_back_again(source: Store, target: Store) -> None:
    before = contents(source)
    back = MemoryStore(clock=FakeClock(start_us=5_000_000))
    copy(source, target)
    copy(target, back)
    assert contents(back) == before


def advance(store: Any, seconds: float) -> None:
    """Move the clock of a store, which is its own."""
    store.clock.advance(seconds)
