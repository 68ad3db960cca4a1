"""Random graphs as flows, whatever dies; and what the hints and the backstop are there for."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast._sync.flows.working import stepping
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.running import settlements
from holdfast.workers.steps._sync import flows
from tests.workers.flow_graphs import GraphRun, graph, run_through

SIZE = 150


@pytest.fixture
def run() -> Iterator[GraphRun]:
    clock, chosen = FakeClock(), random.Random(17)
    store = MemoryStore(clock=clock)
    yield GraphRun(store, clock, graph(chosen, SIZE), poison={20, 90})
    store.close()


def test_each_node_runs_after_those_before_it_and_is_followed_once(run: GraphRun) -> None:
    run_through(run, random.Random(18), deaths=6)


def test_control_without_the_backstop_a_flow_waits_for_ever_for_a_node_that_the_store_buried(run: GraphRun, monkeypatch: Any) -> None:
    monkeypatch.setattr(flows, "FIRST_LOOK_S", 1e9)
    monkeypatch.setattr(flows, "LAST_LOOK_S", 1e9)
    run.concurrency = 1  # A flow that runs beside poison dies with it, and looks at its nodes when it is run again.
    assert run.live_until(("dead", "done"), 40) == "sleeping"


def test_without_hints_a_flow_is_only_slower(run: GraphRun, monkeypatch: Any) -> None:
    run.poison = set()
    assert run.live_until(("done",), 3) == "done"
    slow = GraphRun(run.store, run.clock, run.before, poison=set())
    monkeypatch.setattr(settlements, "_wake_ups", lambda *_: [])
    monkeypatch.setattr(stepping, "_has_marks", lambda *_: False)
    assert slow.live_until(("done",), SIZE) == "done"
    slow.check_results()
    assert slow.lives > run.lives


def test_a_node_with_more_followers_than_one_step_takes_is_counted_down_once(monkeypatch: Any) -> None:
    monkeypatch.setattr("holdfast.workers.flows.countdown.EDGES", 7)
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    wide = GraphRun(store, clock, [[], *([0] for _ in range(60)), list(range(61))], poison=set())
    assert wide.live_until(("done",), 3) == "done"
    wide.check_results()
    store.close()
