"""Stores that are broken in one way each, and running a conformance test against one."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any, TypeVar
from unittest.mock import patch

from msgspec import Struct

from holdfast.clock import Clock
from holdfast.commands import Command
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance import THEMES, Conformance, StoreFactory
from holdfast.testing.conformance.copying import elsewhere

Breaks = Callable[..., Any]
"""Takes the whole method's place: it is given the method as it was, then what the method is given."""


R = TypeVar("R")


class PlainStore(MemoryStore):
    """A memory store that takes no fast path past what is broken."""

    def execute(self, command: Command[R]) -> R:
        return self._run(command)


class PlainFactory:
    def make(self, clock: Clock) -> Store:
        return PlainStore(clock=clock)


class Mutant(Struct, frozen=True):
    """What is broken, how, and the test that must notice."""

    name: str
    target: Any
    attribute: str
    breaks: Any
    """A function around the method, or another value."""
    noticed_by: str


def test_named(name: str) -> tuple[type[Conformance], Any]:
    """The theme and the test of this name, of which there is exactly one."""
    found = [(theme, vars(theme)[name]) for theme in THEMES if name in vars(theme)]
    assert len(found) == 1, f"{len(found)} tests are called {name}"
    return found[0]


test_named.__test__ = False  # type: ignore[attr-defined]


def failures(mutant: Mutant) -> list[BaseException]:
    """What the named test says of the broken store, over all that it is parametrised with."""
    with ExitStack() as stack:
        stack.enter_context(patch("holdfast.testing.conformance.threads.PATIENCE_S", 0.4))
        original = getattr(mutant.target, mutant.attribute)
        breaks = mutant.breaks
        broken = (lambda *given, **more: breaks(original, *given, **more)) if inspect.isfunction(breaks) else breaks
        stack.enter_context(patch.object(mutant.target, mutant.attribute, broken))
        return list(run(mutant.noticed_by, PlainFactory()))


def run(name: str, factory: StoreFactory) -> Iterator[BaseException]:
    """Run one conformance test on stores of the factory; what it raised each time it failed."""
    theme, test = test_named(name)
    for parameters in parameters_of(test):
        clock = FakeClock()
        store = factory.make(clock)
        known = {"store": store, "clock": clock, "factory": factory, "other": elsewhere(), **parameters}
        asked = {name: known[name] for name in inspect.signature(test).parameters if name != "self"}
        try:
            test(theme(), **asked)
        except BaseException as error:  # noqa: BLE001 - however a test notices; pytest's own failures are no Exceptions
            yield error
        finally:
            store.close()


def parameters_of(test: Any) -> Iterator[dict[str, Any]]:
    """What a test is parametrised with: names and values, for each time it runs."""
    axes = []
    for mark in getattr(test, "pytestmark", ()):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        axes.append([dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in mark.args[1]])
    for rows in product(*axes):
        yield {name: value for row in rows for name, value in row.items()}
