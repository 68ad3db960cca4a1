"""The budget of a durable job counts crashes since its last record; and what waiting, sending and cancelling do to each other."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, JobCancelled, JobContext, Tasks
from holdfast.commands import Change, Command, Together, Write
from holdfast.errors import Closed
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps.rows import signals_of
from tests.workers.durable import Bench
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


class Meddler(MortalStore):
    """Does something else just before the n-th command that writes."""

    def __init__(self, store: MemoryStore, number: int, act: Callable[[], object]) -> None:
        super().__init__(store, Fate())
        self._number = number
        self._act = act
        self.count = 0

    def execute(self, command: Command[Any]) -> Any:
        if not command.reads_only and type(command).__name__ != "Claim":
            self.count += 1
            if self.count == self._number:
                self._act()
        return super().execute(command)


class Forgetful(Meddler):
    """The control: forgets to compare what a sleeping job waits for."""

    def execute(self, command: Command[Any]) -> Any:
        if isinstance(command, Together):
            kept = [one for one in command.commands if not (isinstance(one, Write) and all(_is_compare(change) for change in one.changes))]
            command = Together(kept) if len(kept) < len(command.commands) else command
            return super().execute(command)[: len(kept)]
        return super().execute(command)


def _is_compare(change: Change) -> bool:
    return change.do == "compare"


def woken(kind: type[Meddler], number: int, what: str, clock: FakeClock) -> str | None:
    """How a job ends that waits for a signal, if the signal, a request to cancel, or time comes just before its n-th command.

    None if it has no such command.
    """
    store = MemoryStore(clock=clock)
    plain = Bench(store, clock)
    acted: list[str] = []

    def act() -> None:
        acted.append(what)
        if what == "send":
            job.send("approved", "yes")
        elif what == "cancel":
            job.cancel()
        else:
            clock.advance(31.0)

    meddler = kind(store, number, act)
    app = Tasks("waits", client=ControlPlaneClient.on(meddler), max_attempts=3)

    @app.task(name="order")
    def order(job: JobContext) -> str:
        job.step("begin", int)
        try:
            return job.wait("approved", str, timeout_s=30.0)
        except TimeoutError:
            return "late"
        except JobCancelled:
            job.step("undo", int)
            raise

    job = Tasks("waits", client=plain.client).task(name="order")(order.function).put()

    for _ in range(3):
        app.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=1e6)
        if what == "expire":
            clock.advance(31.0)  # What was about to sleep when the time came sleeps once more.
    status = job.status()
    if not acted:
        return None
    return str(job.result(timeout_s=0)) if status.state == "done" else status.state


@pytest.mark.parametrize("what", ["send", "cancel", "expire"])
def test_nothing_that_comes_between_two_commands_is_lost(what: str) -> None:
    wanted = {"send": "yes", "cancel": "cancelled", "expire": "late"}[what]
    # Before its second command the timer of the job has not begun.
    ends = [woken(Meddler, number, what, FakeClock()) for number in range(3 if what == "expire" else 2, 10)]
    reached = [end for end in ends if end is not None]
    assert reached
    assert set(reached) == {wanted}


def test_without_the_comparison_a_signal_is_lost() -> None:
    ended = {woken(Forgetful, number, "send", FakeClock()) for number in range(2, 6)}
    assert "sleeping" in ended


def test_signals_for_another_queue_have_their_own_dict() -> None:
    assert signals_of("a") != signals_of("b")
