"""From every store to every store, by the suite's own measure."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.stores import Store
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import drain
from holdfast.testing.conformance.copying import contents, copy, fill

KINDS: dict[str, Callable[[Path, FakeClock], Store]] = {
    "memory": lambda _, clock: MemoryStore(clock=clock),
    "sqlite": lambda path, clock: SqliteStore(path, clock=clock, durability="process"),
    "lmdb": lambda path, clock: LmdbStore(path, clock=clock, durability="process"),
}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    clock = FakeClock()
    store = KINDS[request.param](tmp_path / "source", clock)
    fill(store, clock)
    yield store
    store.close()


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = KINDS[request.param](tmp_path / "target", FakeClock(start_us=1_000_000))
    yield store
    store.close()


def test_everything_arrives_as_it_was(source: Store, target: Store) -> None:
    before = contents(source)
    copy(source, target, page=3)
    assert contents(target) == before


def test_what_arrived_is_handed_out_in_the_order_of_the_source(source: Store, target: Store) -> None:
    copy(source, target)
    assert drain(target) == ["failing", "urgent", "plain 1", "plain 2", "large", "behind it", "to be started", "low"]


def test_there_and_back_again(source: Store, target: Store) -> None:
    before = contents(source)
    back = MemoryStore(clock=FakeClock(start_us=5_000_000))
    copy(source, target)
    copy(target, back)
    assert contents(back) == before
