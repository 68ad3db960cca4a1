"""Processes that die before or after any command, or inside any effect, change nothing about what a durable job does."""

from pathlib import Path

import pytest

from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of
from tests.workers.durable_flows import Flow
from tests.workers.mortal_store import Fate

SAMPLES = {"memory": 1, "sqlite": 2, "lmdb": 2, "postgres": 5, "redis": 5, "http": 5}
"""Of how many boundaries one is tried."""


def boundaries(kind: str, folder: Path, *, is_async: bool) -> tuple[int, int]:
    """How many commands that write, and how many effects, one undisturbed process has."""
    clock, fate = FakeClock(), Fate()
    store = factory_of(kind, folder).make(clock)
    Flow(store, clock, is_async=is_async).run(fate)
    store.close()
    return fate.commands, fate.effects


def dies_everywhere(kind: str, folder: Path, *, is_async: bool, every: int) -> int:
    """Let a process die at each of these boundaries; how many there were."""
    (folder / "undisturbed").mkdir()
    commands, effects = boundaries(kind, folder / "undisturbed", is_async=is_async)
    assert (commands >= 15, effects) == (True, 5)
    fates = [Fate(number, after=after) for number in range(1, commands + 1) for after in (False, True)]
    fates += [Fate(effect=number) for number in range(1, effects + 1)]
    for number, fate in enumerate(fates[::every]):
        clock, own = FakeClock(), folder / str(number)
        own.mkdir()
        store = factory_of(kind, own).make(clock)
        try:
            Flow(store, clock, is_async=is_async).run(fate)
        finally:
            store.close()
    return len(fates[::every])


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_a_death_at_any_command_or_effect_changes_nothing(kind: str, tmp_path: Path, *, is_async: bool) -> None:
    assert dies_everywhere(kind, tmp_path, is_async=is_async, every=SAMPLES[kind])
