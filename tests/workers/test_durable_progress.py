"""The budget of a durable job counts crashes since its last record; and what waiting, sending and cancelling do to each other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from holdfast import ControlPlaneClient, JobCancelled, JobContext, Tasks
from holdfast.commands import Change, Command, Together, Write
from holdfast.errors import Closed, JobGone
from holdfast.stores import Store
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
    """Does something else just before some of the commands that write."""

    def __init__(self, store: Store, events: "Sequence[Event]", act: Callable[[str], object]) -> None:
        super().__init__(store, Fate())
        self._events = events
        self._act = act
        self.count = 0

    def execute(self, command: Command[Any]) -> Any:
        if not command.reads_only and type(command).__name__ != "Claim":
            self.count += 1
            for number, what in self._events:
                if number == self.count:
                    self._act(what)
        return super().execute(command)


class Forgetful(Meddler):
    """The control: forgets to compare what a sleeping job waits for."""

    def execute(self, command: Command[Any]) -> Any:
        if isinstance(command, Together):
            kept = [one for one in command.commands if not (isinstance(one, Write) and all(_is_compare(change) for change in one.changes))]
            answers = iter(super().execute(Together(kept)))
            return [next(answers) if one in kept else None for one in command.commands]
        return super().execute(command)


def _is_compare(change: Change) -> bool:
    return change.do == "compare"


Event = tuple[int, str]
"""Before which command something happens, and what."""


def woken(kind: type[Meddler], events: Sequence[Event], store: Store, clock: FakeClock) -> str | None:
    """How a job ends that waits for a signal, if a signal, a request to cancel, or time come just before some of its commands.

    None if it has not so many commands.
    """
    plain = Bench(store, clock)
    acted: list[str] = []

    def act(what: str) -> None:
        acted.append(what)
        if what == "send":
            with suppress(JobGone):
                job.send("approved", "yes")
        elif what == "cancel":
            job.cancel()
        else:
            clock.advance(31.0)

    meddler = kind(store, events, act)
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
        if "expire" in acted:
            clock.advance(31.0)  # What was about to sleep when the time came sleeps once more.
    status = job.status()
    if len(acted) < len(events):
        return None
    return str(job.result(timeout_s=0)) if status.state == "done" else status.state


ENDS = {"send": "yes", "cancel": "cancelled", "expire": "late"}


@pytest.mark.parametrize("what", sorted(ENDS))
def test_nothing_that_comes_between_two_commands_is_lost(what: str) -> None:
    # Before its second command the timer of the job has not begun.
    ends = [ended(Meddler, [(number, what)]) for number in range(3 if what == "expire" else 2, 10)]
    reached = [end for end in ends if end is not None]
    assert reached
    assert set(reached) == {ENDS[what]}


def test_without_the_comparison_a_signal_is_lost() -> None:
    assert "sleeping" in {ended(Forgetful, [(number, "send")]) for number in range(2, 6)}


def ended(kind: type[Meddler], events: Sequence[Event]) -> str | None:
    """The same, in memory."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    try:
        return woken(kind, events, store, clock)
    finally:
        store.close()


def test_signals_for_another_queue_have_their_own_dict() -> None:
    assert signals_of("a") != signals_of("b")
