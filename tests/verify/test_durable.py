"""Durable jobs at scale: zombies, deaths at every boundary, kills and random handlers, each with what goes wrong without the rule."""

import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from tests.server.serving import Served
from tests.stores_by_name import factory_of, url_of
from tests.workers.interleavings import Forgetful, Meddled, Meddler, interleavings, meddled
from tests.workers.test_durable_kills import SAMPLES, dies_everywhere
from tests.workers.test_durable_sigkill import survives
from tests.workers.test_durable_zombies import accepted
from tests.workers.test_random_handlers import (
    changed_code_never_repeats_a_recorded_step,
    crashed_runs_end_as_undisturbed_ones,
    seeds,
    stopped_by_position,
)

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3_600)]

PARTS = 4


@pytest.mark.parametrize("kind", ["memory", "sqlite", "lmdb", "postgres", "redis", "http"])
def test_of_two_thousand_zombies_none_records_a_step(kind: str, tmp_path: Path) -> None:
    """Processes share memory behind a server."""
    with closing(Served(MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "behind"))) as served:
        url = served.url if kind in ("memory", "http") else url_of(kind, tmp_path)
        found = {guard: accepted(url, guard, zombies) for guard, zombies in (("claim", 2_000), ("fence", 100), ("none", 100))}
    sys.stdout.write(f"{kind}: {found}\n")
    assert found == {"claim": 0, "fence": 100, "none": 100}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_a_death_at_every_command_and_effect_changes_nothing(kind: str, tmp_path: Path, *, is_async: bool) -> None:
    boundaries = dies_everywhere(kind, tmp_path, is_async=is_async, every=1)
    sys.stdout.write(f"{kind}, async {is_async}: {boundaries} boundaries\n")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_process_killed_at_every_command_loses_and_repeats_nothing(kind: str, tmp_path: Path) -> None:
    killed, number = 0, 0
    while True:
        number += 1
        alive = 0
        for sign in (1, -1):
            folder = tmp_path / f"{number}{sign}"
            folder.mkdir()
            alive += not survives(url_of(kind, folder), folder / "effects", sign * number)
        killed += 2 - alive
        if alive == 2:
            break
    sys.stdout.write(f"{kind}: {killed} processes killed\n")
    assert killed > 20


@pytest.mark.parametrize(("kind", "events"), [("memory", 3), ("sqlite", 2), ("postgres", 1), ("redis", 1)])
def test_no_interleaving_of_events_with_ten_commands_loses_or_doubles_any(kind: str, events: int, tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for number, happens in enumerate(interleavings(events, 10)):
        clock, folder = FakeClock(), tmp_path / str(number)
        folder.mkdir()
        store = factory_of(kind, folder).make(clock)
        found[Meddled(Meddler, happens, store, clock).run()] += 1
        store.close()
    sys.stdout.write(f"{kind}: {dict(found)} of {events} events\n")
    assert set(found) == {"right", "shorter"}


def test_control_without_the_comparison_some_are_lost() -> None:
    found = Counter(meddled(Forgetful, happens) for happens in interleavings(2, 10))
    sys.stdout.write(f"{dict(found)}\n")
    assert any(one.startswith("it sleeps although") for one in found)


@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_random_handlers_end_as_undisturbed_ones(part: int) -> None:
    crashed_runs_end_as_undisturbed_ones(seeds(part * 10_000 // PARTS, 10_000 // PARTS))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_thousand_changed_handlers_repeat_nothing(part: int) -> None:
    stopped = changed_code_never_repeats_a_recorded_step(seeds(100_000 + part * 1_000 // PARTS, 1_000 // PARTS))
    sys.stdout.write(f"{stopped} of {1_000 // PARTS} were stopped\n")
    assert stopped > 0


def test_control_steps_that_are_told_apart_by_position_stop_handlers_that_did_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = stopped_by_position(monkeypatch, seeds(0, 200))
    sys.stdout.write(f"{wrong} of 200 stopped\n")
    assert wrong > 0
