"""Random durable handlers against a run without crashes, and against changes of their code."""

import random
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from holdfast import ControlPlaneClient
from holdfast.errors import Closed
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps.history import History
from holdfast.workers.steps.rows import Key
from tests.workers.mortal_store import Fate, MortalStore
from tests.workers.random_handlers import Effects, Program, mutated, program, tasks_of, waits_of

SEEDS = 40
LIVES = 60


class Run:
    """One job of a random program, through the lives of its workers."""

    def __init__(self, made: Program) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.effects = Effects()
        app = tasks_of(ControlPlaneClient.on(MortalStore(self.store, Fate())), self.effects, made)
        self.job: Any = app.find("run").put()
        for number in waits_of(made):
            self.job.send(f"go {number}", number)

    def recorded(self) -> dict[str, int]:
        """How often each step was done that is recorded by now."""
        return {step.name: self.effects.of(step.name) for step in self.job.steps() if step.state == "done" and step.name.startswith("step")}

    def live(self, made: Program, fate: Fate) -> None:
        """One process of workers: whatever becomes of it, it does nothing again that was recorded before."""
        before = self.recorded()
        self._live(made, fate)
        assert {name: self.effects.of(name) for name in before} == before

    def _live(self, made: Program, fate: Fate) -> None:
        app = tasks_of(ControlPlaneClient.on(MortalStore(self.store, fate)), self.effects, made)
        try:
            app.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=60.0)
        except Closed:
            assert fate.is_dead
        self.clock.advance(61.0)

    def finish(self, made: Program) -> str:
        """Live on without deaths; returns how the job ended."""
        for _ in range(LIVES):
            state: str = self.job.status().state
            if state in ("done", "dead"):
                return state
            self.live(made, Fate())
        raise AssertionError(f"not done after {LIVES} lives: {self.job.status()}")


def seeds(first: int, count: int) -> range:
    return range(first, first + count)


def crashed_runs_end_as_undisturbed_ones(numbers: range) -> None:
    """Results are equal, and a step that was recorded is not done again."""
    for seed in numbers:
        chosen = random.Random(seed)
        made = program(chosen, chosen.randint(2, 5))
        reference, crashed = Run(made), Run(made)
        assert reference.finish(made) == "done"
        for _ in range(chosen.randint(1, 4)):
            crashed.live(made, Fate(chosen.randint(1, 12), after=chosen.random() < 0.5))
        assert crashed.finish(made) == "done", (seed, crashed.job.status().error)
        assert crashed.job.result(timeout_s=0) == reference.job.result(timeout_s=0), seed
        for store in (reference.store, crashed.store):
            store.close()


def begun(made: Program, chosen: random.Random) -> Run:
    """A job of the program whose first worker died in the middle of it."""
    while True:
        run = Run(made)
        run.live(made, Fate(chosen.randint(2, 14)))
        if run.job.status().state != "done":
            return run
        run.store.close()


def changed_code_never_repeats_a_recorded_step(numbers: range) -> int:
    """How many of the changed programs were stopped; the others ended as if they had begun changed."""
    stopped = 0
    for seed in numbers:
        chosen = random.Random(seed)
        made = program(chosen, chosen.randint(2, 5))
        run, changed = begun(made, chosen), mutated(chosen, made)
        if run.finish(changed) == "dead":
            assert (run.job.status().error or "").startswith("StepsChanged"), (seed, run.job.status().error)
            stopped += 1
        else:
            reference = Run(changed)
            assert reference.finish(changed) == "done"
            assert run.job.result(timeout_s=0) == reference.job.result(timeout_s=0), seed
            reference.store.close()
        run.store.close()
    return stopped


def stopped_by_position(monkeypatch: pytest.MonkeyPatch, numbers: range) -> int:
    """How many programs that did not change do not end well where steps are told apart by their position."""
    positions: WeakKeyDictionary[History, int] = WeakKeyDictionary()

    def by_position(self: History, branch: str, name: str, hashed: str) -> Key:
        del branch, hashed
        positions[self] = positions.get(self, -1) + 1
        return ("", name, "", positions[self])

    monkeypatch.setattr(History, "identify", by_position)
    wrong = 0
    for seed in numbers:
        chosen = random.Random(seed)
        made = program(chosen, chosen.randint(2, 5))
        run = Run(made)
        for _ in range(chosen.randint(1, 4)):
            run.live(made, Fate(chosen.randint(1, 12), after=chosen.random() < 0.5))
        wrong += run.finish(made) != "done"
        run.store.close()
    return wrong


def test_a_job_whose_workers_die_ends_as_one_whose_workers_live() -> None:
    crashed_runs_end_as_undisturbed_ones(seeds(0, SEEDS))


def test_changed_code_is_stopped_or_goes_on_but_repeats_nothing() -> None:
    assert changed_code_never_repeats_a_recorded_step(seeds(1_000, 12)) > 0


def test_control_steps_that_are_told_apart_by_position_stop_handlers_that_did_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stopped_by_position(monkeypatch, seeds(0, 3)) > 0
