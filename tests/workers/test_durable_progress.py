"""The budget of a durable job counts crashes since its last record; and what waiting, sending and cancelling do to each other."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, JobContext, Tasks
from holdfast.errors import Closed
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps.rows import signals_of
from tests.workers.interleavings import Forgetful, Meddler, interleavings, meddled
from tests.workers.mortal_store import Fate, MortalStore

LEASE_S = 60.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[MemoryStore]:
    store = MemoryStore(clock=clock)
    yield store
    store.close()


def live(store: MemoryStore, make: Callable[[Tasks, Fate], Any], fate: Fate) -> Any:
    """One process of workers, until nothing is due or it dies."""
    client = ControlPlaneClient.on(MortalStore(store, fate))
    app = Tasks("progress", client=client, max_attempts=3)
    task = make(app, fate)
    try:
        app.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=LEASE_S)
    except Closed:
        assert fate.is_dead
    return task


def test_ten_crashes_with_progress_do_not_bury_and_three_without_do(store: MemoryStore, clock: FakeClock) -> None:
    def make(app: Tasks, fate: Fate) -> Any:
        @app.task(name="long")
        def long(job: JobContext, gets_on: bool) -> int:  # noqa: FBT001 - an argument of a job
            for number in range(12):
                if gets_on:
                    job.step(f"step {number}", int)
            fate.effect()
            return 12

        @app.task(name="walk")
        def walk(job: JobContext) -> int:
            for number in range(12):
                job.step("step", walked, number)
            return 12

        def walked(number: int) -> int:
            fate.effect()
            return number

        return long, walk

    long, walk = make(Tasks("progress", client=ControlPlaneClient.on(MortalStore(store, Fate())), max_attempts=3), Fate())
    job = walk.put()
    for _ in range(10):
        live(store, make, Fate(effect=2))  # It gets one step further, and dies within the next.
        clock.advance(LEASE_S + 1.0)
    live(store, make, Fate())
    assert job.result(timeout_s=0) == 12
    stuck = long.put(gets_on=False)
    for _ in range(3):
        live(store, make, Fate(effect=1))
        clock.advance(LEASE_S + 1.0)
    live(store, make, Fate())
    assert stuck.status().state == "dead"


@pytest.mark.parametrize("events", [1, 2])
def test_nothing_that_comes_between_two_commands_is_lost_or_doubled(events: int) -> None:
    commands = {1: 12, 2: 4}[events]
    found = [meddled(Meddler, one) for one in interleavings(events, commands)]
    assert set(found) == {"right", "shorter"}
    assert found.count("right") > 5


def test_control_without_the_comparison_a_signal_and_a_request_to_cancel_are_lost() -> None:
    lost = {meddled(Forgetful, one) for one in interleavings(1, 6)} | {meddled(Forgetful, one) for one in interleavings(2, 4)}
    assert {"it sleeps although ['cancel'] happened", "it sleeps although ['send', 'send'] happened"} <= lost


def test_signals_for_another_queue_have_their_own_dict() -> None:
    assert signals_of("a") != signals_of("b")
