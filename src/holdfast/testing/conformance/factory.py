"""How a store joins the suite: it says how to open one, and inherits every test."""

from collections.abc import Iterator
from typing import Protocol

import pytest
from msgspec import Struct

from holdfast.clock import Clock
from holdfast.stores import Store
from holdfast.testing.aio import LoopStore
from holdfast.testing.clock import FakeClock


class StoreFactory(Protocol):
    """Opens the store of one test.

    A factory of a store that is kept in files can be pickled, and opens the same store again, in another process too. A store whose
    statements can be counted has `statements(store)`, which answers how many were sent so far.
    """

    def make(self, clock: Clock) -> Store:
        """Open the store on this clock, empty the first time."""
        ...


class ForTasks(Struct, frozen=True):
    """Opens the same store through its face for tasks, so that the same suite judges both."""

    factory: StoreFactory

    def make(self, clock: Clock) -> Store:
        return LoopStore(lambda: self.factory.make(clock).for_tasks())


class Conformance:
    """What every theme stands on: a store, on a clock that the test owns."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """Every store's own: override it."""
        raise NotImplementedError("override the fixture `factory` in your subclass, so that it answers how to open your store")

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def store(self, factory: StoreFactory, clock: FakeClock) -> Iterator[Store]:
        store = factory.make(clock)
        yield store
        store.close()
