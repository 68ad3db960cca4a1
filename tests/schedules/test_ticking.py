"""Processes that put what is due, on every store: each run once, whoever dies, is late, or edits meanwhile."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast._sync.flows import ticking
from holdfast._sync.flows.schedule_book import schedule_of
from holdfast._sync.flows.ticking import Ticker
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.schedule import Schedule
from holdfast.client import ControlPlaneClient
from holdfast.errors import StoreUnavailable
from holdfast.schedules.definition import entry_for
from holdfast.schedules.entries import ORPHAN_US, REMOVED_US, shown
from holdfast.schedules.rules import SECOND
from holdfast.stores import Store
from holdfast.testing.clock import START_US, FakeClock
from tests.copying.test_every_store import KINDS
from tests.schedules.years import ZONES, runs_of_cronsim, without_compare


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    store = KINDS[request.param](tmp_path / "store", clock)
    yield store
    store.close()


@pytest.fixture
def client(store: Store) -> ControlPlaneClient:
    return ControlPlaneClient.on(store)


def test_of_many_who_put_what_is_due_one_does(store: Store, client: ControlPlaneClient, clock: FakeClock) -> None:
    Schedule("beat", "* * * * *", ("jobs", {"n": 1}), overlap="allow", client=client).save()
    tickers = [Ticker(store, f"ticker-{number}") for number in range(3)]
    for _ in range(4):
        clock.advance(60.0)
        for ticker in tickers:
            ticker.tick()
    assert Queue.from_name("jobs", client=client).length() == 4
    assert Schedule.from_name("beat", client=client).status().runs == 4


def test_who_looked_before_another_put_it_puts_nothing(store: Store, client: ControlPlaneClient, clock: FakeClock) -> None:
    Schedule("beat", "* * * * *", ("jobs", 1), client=client).save()
    clock.advance(60.0)
    stored = schedule_of(store, "beat")
    assert stored is not None
    Ticker(store, "fast").tick()
    Queue.from_name("jobs", client=client).get()
    late = Ticker(store, "late")
    late._look(stored, START_US + 60 * SECOND)
    assert late._wakes_in(START_US + 60 * SECOND) == 0.0, "it does not look again at once"
    assert Queue.from_name("jobs", client=client).length() == 0


def test_a_run_is_left_out_while_the_one_before_is_not_over(store: Store, client: ControlPlaneClient, clock: FakeClock) -> None:
    schedules = {
        overlap: Schedule(overlap, "* * * * *", (overlap, 1), overlap=overlap, client=client) for overlap in ("skip", "queue", "allow")
    }
    for schedule in schedules.values():
        schedule.save()
    ticker = Ticker(store, "me")
    clock.advance(60.0)
    ticker.tick()
    for name in schedules:
        Queue.from_name(name, client=client).claim(lease_s=3_600.0)
    for _ in range(3):
        clock.advance(60.0)
        ticker.tick()
    found = {
        name: (stats.ready + stats.buffered, schedule.status().skipped)
        for name, schedule in schedules.items()
        for stats in [Queue.from_name(name, client=client).stats()]
    }
    assert found == {"skip": (0, 3), "queue": (1, 2), "allow": (3, 0)}


def test_the_next_look_is_when_the_next_run_is_due(store: Store, client: ControlPlaneClient, clock: FakeClock) -> None:
    ticker = Ticker(store, "me")
    assert ticker.tick() is None
    Schedule("beat", "every 60 s", ("jobs", 1), client=client).save()
    Schedule("slow", "every 3600 s", ("jobs", 1), client=client).save()
    first_s = ticker.tick()
    assert first_s is not None
    assert 0 < first_s <= 60
    clock.advance(first_s)
    assert ticker.tick() == 60.0


def test_a_full_queue_keeps_its_run_waiting(store: Store, client: ControlPlaneClient, clock: FakeClock) -> None:
    jobs = Queue.create("jobs", maxsize=1, client=client)
    jobs.put("in the way")
    Schedule("beat", "every 3600 s", ("jobs", 1), client=client).save()
    ticker = Ticker(store, "me")
    clock.advance(3_600.0)
    assert ticker.tick() == ticking.AGAIN_S
    jobs.get()
    clock.advance(ticking.AGAIN_S)
    ticker.tick()
    assert jobs.get() == 1


def test_what_code_declares_is_saved_seen_orphaned_and_removed(store: Store, client: ControlPlaneClient, clock: FakeClock) -> None:
    def declared(rule: str) -> dict[str, Any]:
        return {"mine": replace(entry_for(rule, "jobs", 1, {"overlap": "allow"}), source="shop")}

    jobs, handle = Queue.from_name("jobs", client=client), Schedule.from_name("mine", client=client)
    Ticker(store, "old", declared("every 60 s")).tick()
    handle.pause("not now")
    Ticker(store, "new", declared("every 120 s")).tick()
    assert (handle.status().rule, handle.status().paused) == ("every 120 s", "not now"), "what an operator said stays"
    handle.resume()
    watcher = Ticker(store, "other")
    clock.advance(ORPHAN_US / SECOND + 301.0)
    watcher.tick()
    assert (handle.status().is_orphan, handle.status().next_run, jobs.length()) == (True, None, 0)
    Ticker(store, "new", declared("every 120 s")).tick()
    assert (handle.status().is_orphan, jobs.length()) == (False, 1)
    clock.advance(REMOVED_US / SECOND + 301.0)
    watcher.tick()
    assert Schedule.list(client=client) == []


class Dying:
    """A store for one ticker, which dies before or after some of its commands."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._rng = rng

    def execute(self, command: Any) -> Any:
        if self._rng.random() < 0.1:
            raise StoreUnavailable("it died before")
        answer = self._store.execute(command)
        if self._rng.random() < 0.1:
            raise StoreUnavailable("it died after")
        return answer

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()


class Careless(Dying):
    def execute(self, command: Any) -> Any:
        return super().execute(without_compare(command))


TICKERS = 8


ON_EVERY_STORE = [pytest.param(kind, marks=() if kind == "memory" else pytest.mark.verify) for kind in KINDS]


def year(make: Callable[[Store, random.Random], Any], zone: str, kind: str, folder: Path) -> tuple[list[str], list[str]]:
    """The runs of a year of a nightly schedule with eight tickers that die, consumed at once, and the runs that cronsim lists."""
    clock, rng = FakeClock(), random.Random(zone)
    store = KINDS[kind](folder / "store", clock)
    client = ControlPlaneClient.on(store)
    Schedule("nightly", "30 2 * * *", ("jobs", 1), tz=zone, catch_up="all", overlap="allow", client=client).save()
    jobs, put, moments = Queue[int]("jobs", client=client), list[str](), runs_of_cronsim("30 2 * * *", zone, 366)
    for moment in moments:
        clock.advance((moment - clock.now_us()) / SECOND)
        tickers = [Ticker(make(store, rng), f"ticker-{number}") for number in range(TICKERS)]
        looks = [(ticker, schedule_of(store, "nightly")) for ticker in tickers]
        for ticker, stored in looks:
            assert stored is not None
            try:
                ticker._look(stored, moment)
            except StoreUnavailable:
                continue
            put += _consumed(jobs)
        put += _consumed(jobs)
    Ticker(store, "the last").tick()
    put += _consumed(jobs)
    client.close()
    return put, [f"nightly@{shown(moment)}" for moment in moments]


def _consumed(jobs: Queue[int]) -> list[str]:
    found = []
    while (claim := jobs.claim()) is not None:
        found.append(claim.id)
        jobs.ack(claim)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", ON_EVERY_STORE)
def test_a_year_over_both_changes_of_the_clock_has_each_run_once(kind: str, zone: str, tmp_path: Path) -> None:
    put, expected = year(Dying, zone, kind, tmp_path)
    assert put == expected


@pytest.mark.parametrize("kind", ON_EVERY_STORE)
def test_control_without_the_comparison_runs_are_put_twice(kind: str, tmp_path: Path) -> None:
    put, _ = year(Careless, "Europe/Vienna", kind, tmp_path)
    assert len(put) > len(set(put))
