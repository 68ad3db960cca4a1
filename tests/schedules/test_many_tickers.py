"""Schedules at scale and over time: many workers, steps of the clock, and old and new code side by side."""

import random
import time
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast._sync.flows import ticking
from holdfast._sync.flows.schedule_book import schedule_of
from holdfast._sync.flows.ticking import Ticker
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.schedule import Schedule
from holdfast.client import ControlPlaneClient
from holdfast.commands import Together
from holdfast.errors import Closed
from holdfast.schedules.definition import entry_for
from holdfast.schedules.entries import due
from holdfast.schedules.rules import SECOND
from holdfast.schedules.turns import Peers
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import START_US, FakeClock
from tests.workers.detours import Detour

MINUTE_US = 60 * SECOND


def runs_over_steps(seed: int, *, remembers: bool = True) -> list[int]:
    """What is put while the clock is wrong by up to five minutes, another amount at each look."""
    rng, true = random.Random(seed), START_US
    entry = replace(entry_for("every 60 s", "jobs", 1, {"catch_up": "all"}), last=true)
    runs: list[int] = []
    for _ in range(1_000):
        true += rng.randrange(90) * SECOND
        seen = true + rng.randrange(300) * SECOND
        found = due(entry, seen)
        if found is not None:
            runs += found.runs
            entry = found.entry
            assert entry.restarted_at is None
        if not remembers:
            entry = replace(entry, last=seen)
    return runs


@pytest.mark.parametrize("seed", range(10))
def test_steps_of_the_clock_up_to_five_minutes_repeat_no_run(seed: int) -> None:
    runs = runs_over_steps(seed)
    assert len(runs) > 100
    assert runs == sorted(set(runs))


def test_control_who_goes_by_the_clock_of_the_last_look_repeats_runs() -> None:
    runs = runs_over_steps(1, remembers=False)
    assert len(runs) > len(set(runs))


@pytest.mark.parametrize(("schedules", "workers"), [(50, 20), pytest.param(500, 200, marks=pytest.mark.verify)])
def test_many_workers_cost_about_one_write_for_each_run(schedules: int, workers: int) -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    client = ControlPlaneClient.on(store)
    for number in range(schedules):
        Schedule(f"s{number}", "every 60 s", ("jobs", number), overlap="allow", client=client).save()
    writes: list[Any] = []

    def counted(command: Any) -> Any:
        writes.extend([command] if isinstance(command, Together) else [])
        return store.execute(command)

    names = frozenset(f"worker-{number}" for number in range(workers))
    tickers = [Ticker(Detour(store, counted), name) for name in sorted(names)]
    for ticker in tickers:
        ticker._peers = (time.monotonic() + 3600.0, Peers(ticker._me, names))
    random.Random(1).shuffle(tickers)
    for seconds in (60.0, 1.5):
        clock.advance(seconds)
        for ticker in tickers:
            ticker.tick()
    assert Queue.from_name("jobs", client=client).length() == schedules
    assert len(writes) <= 1.2 * schedules
    client.close()


@pytest.fixture
def stopped_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes for tickers while they reckon how long to wait, however slow the machine is."""
    monkeypatch.setattr(ticking, "time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.mark.usefixtures("stopped_time")
def test_each_wakes_at_its_own_turn_whoever_else_waits() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    Schedule("beat", "every 60 s", ("jobs", 1), client=ControlPlaneClient.on(store)).save()
    waits: dict[str, float] = {}
    for name in ("one", "two", "three"):

        def waited(_: Any, timeout_s: float, due_in_s: float | None, __: float | None, name: str = name) -> None:
            assert timeout_s == due_in_s, "a due moment alone wakes one of those who wait in this process"
            waits[name] = timeout_s
            raise Closed

        detour: Any = Detour(store, store.execute)
        detour.wait = waited
        ticker = Ticker(detour, name)
        ticker._peers = (3600.0, Peers(name, frozenset({"one", "two", "three"})))
        ticker.run()
    first_s = min(waits.values())
    assert sorted(wait_s - first_s for wait_s in waits.values()) == pytest.approx([0.0, 1.0, 2.0])
    store.close()


def commands_of_hints(count: int) -> int:
    """How many commands a process sends that is woken so often, one time right after the other, while nothing is due."""
    store, commands, woken = MemoryStore(clock=FakeClock()), list[Any](), iter(range(count))
    Schedule("beat", "every 60 s", ("jobs", 1), client=ControlPlaneClient.on(store)).save()

    def counted(command: Any) -> Any:
        commands.append(command)
        return store.execute(command)

    def wait(*_: Any) -> None:
        if next(woken, None) is None:
            raise Closed

    detour: Any = Detour(store, counted)
    detour.wait = wait
    Ticker(detour, "me").run()
    store.close()
    return len(commands)


def test_hints_that_come_close_together_cost_no_command_each() -> None:
    assert commands_of_hints(100) < 20


def test_control_who_reads_at_each_hint_sends_as_many_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticking, "QUIET_S", 0.0)
    assert commands_of_hints(100) > 100


@pytest.mark.usefixtures("stopped_time")
@pytest.mark.parametrize(("processes", "quiet_s"), [(1, 1.0), (50, 1.0), (1_000, 20.0)])
def test_however_many_processes_there_are_they_read_as_often_as_fifty(processes: int, quiet_s: float) -> None:
    store, waits = MemoryStore(clock=FakeClock()), list[float]()
    Schedule("beat", "every 3600 s", ("jobs", 1), client=ControlPlaneClient.on(store)).save()

    def waited(_: Any, timeout_s: float, *__: Any) -> None:
        waits.append(timeout_s)
        if len(waits) == 2:
            raise Closed

    detour: Any = Detour(store, store.execute)
    detour.wait = waited
    ticker = Ticker(detour, "0")
    ticker._peers = (3600.0, Peers("0", frozenset(map(str, range(processes)))))
    ticker.run()
    assert waits[1] == quiet_s, "how long the first hint is only noted"
    store.close()


def side_by_side(source: str | None) -> tuple[int, list[int]]:
    """An hour of old code beside new code that dropped a schedule, then the new code alone.

    Returns how often the schedule ran that both have, and by each minute the one that was dropped.
    """
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    client = ControlPlaneClient.on(store)

    def declared(*names: str) -> dict[str, Any]:
        return {name: replace(entry_for("every 60 s", name, 1, {"overlap": "allow"}), source=source) for name in names}

    old, new = Ticker(store, "old", declared("both", "dropped")), Ticker(store, "new", declared("both"))
    lengths: list[int] = []
    old.tick()
    for minute in range(240):
        clock.advance(60.0)
        if minute < 60:
            old.tick()
        new.tick()
        lengths.append(Queue.from_name("dropped", client=client).length())
    both = Queue.from_name("both", client=client).length()
    client.close()
    return both, lengths


def test_old_and_new_code_side_by_side_miss_nothing_and_drop_what_is_gone() -> None:
    both, lengths = side_by_side("shop")
    assert both == 240
    assert lengths[59] == 60
    assert 60 <= lengths[-1] <= 60 + 65
    assert lengths[-1] == lengths[60 + 65]


def test_control_a_schedule_without_a_source_is_never_dropped() -> None:
    _, lengths = side_by_side(None)
    assert lengths[-1] == 240


@pytest.mark.parametrize("catch_up", ["none", "last", "all"])
@pytest.mark.parametrize(
    ("overlap", "before", "model"),
    [
        ("allow", "nothing", lambda runs: runs),
        ("allow", "ready", lambda runs: 1 + runs),
        ("allow", "claimed", lambda runs: 1 + runs),
        ("skip", "nothing", lambda runs: min(1, runs)),
        ("skip", "ready", lambda runs: 1),
        ("skip", "claimed", lambda runs: 1),
        ("queue", "nothing", lambda runs: min(1, runs)),
        ("queue", "ready", lambda runs: 1),
        ("queue", "claimed", lambda runs: 1 + min(1, runs)),
        ("replace", "nothing", lambda runs: min(1, runs)),
        ("replace", "ready", lambda runs: 1),
        ("replace", "claimed", lambda runs: 1),
    ],
)
def test_overlap_and_catching_up_do_together_what_a_model_says(catch_up: Any, overlap: Any, before: str, model: Any) -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    client = ControlPlaneClient.on(store)
    Schedule("beat", "every 600 s", ("jobs", 1), overlap=overlap, catch_up=catch_up, client=client).save()
    ticker, jobs = Ticker(store, "one"), Queue[int]("jobs", client=client)
    if before != "nothing":
        clock.advance(600.0 - START_US / SECOND % 600.0)
        ticker.tick()
        assert jobs.length() == 1
    if before == "claimed":
        assert jobs.claim(lease_s=1e6) is not None
    clock.advance(3 * 600.0 + 120.0)
    ticker.tick()
    missed = {"none": 0, "last": 1, "all": 3}[catch_up]
    assert jobs.stats().total == model(missed)
    client.close()


def test_of_two_that_save_what_both_declare_at_once_each_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(clock=FakeClock())
    declared = {"beat": replace(entry_for("every 60 s", "jobs", 1, {}), source="shop")}
    others = iter([Ticker(store, "fast", declared)])

    def looked_before_another(*of: Any) -> Any:
        found = schedule_of(*of)
        for other in others:
            other.tick()
        return found

    monkeypatch.setattr(ticking, "schedule_of", looked_before_another)
    assert Ticker(store, "late", declared).tick() is not None
    store.close()
