"""What others do to a durable job between any two of its commands: send signals, ask it to end, let time pass."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations_with_replacement, product
from typing import Any

from holdfast import ControlPlaneClient, JobCancelled, JobContext, Tasks
from holdfast.commands import Change, Command, Together, Write
from holdfast.errors import JobGone
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.workers.durable import Bench
from tests.workers.mortal_store import Fate, MortalStore

TIMEOUT_S = 30.0
WAITS = 2
KINDS = ("cancel", "expire", "send")


Event = tuple[int, str]
"""Before which command something happens, and what."""


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


def interleavings(events: int, commands: int) -> Iterator[tuple[Event, ...]]:
    """Every way in which so many events can come before the second to the n-th command that writes."""
    for places in combinations_with_replacement(range(2, commands + 1), events):
        for kinds in product(KINDS, repeat=events):
            yield tuple(zip(places, kinds, strict=True))


class Meddled:
    """A job that waits for two signals, each for a time, while this happens."""

    def __init__(self, kind: type[Meddler], events: Sequence[Event], store: Store, clock: FakeClock) -> None:
        self.events = events
        self.acted: list[str] = []
        self.sent: list[int] = []
        self.asked = False
        self.did: Counter[str] = Counter()
        self._bench = Bench(store, clock)
        self._app = Tasks("waits", client=ControlPlaneClient.on(kind(store, events, self._act)), max_attempts=3)
        order = self._app.task(name="order")(self._order)
        self.job: Any = Tasks("waits", client=self._bench.client).task(name="order")(order.function).put()

    def _order(self, job: JobContext) -> list[Any]:
        taken: list[Any] = []
        job.step("begin", self._note, "begin")
        try:
            while len(taken) < WAITS:
                taken.append(job.wait("go", int, timeout_s=TIMEOUT_S))
        except TimeoutError:
            taken.append("late")
        except JobCancelled:
            job.step("undo", self._note, "undo")
            raise
        return taken

    def _note(self, what: str) -> None:
        self.did[what] += 1

    def _act(self, what: str) -> None:
        self.acted.append(what)
        if what == "send":
            number = self.acted.count("send")
            with suppress(JobGone):
                self.job.send("go", number)
                self.sent.append(number)
        elif what == "cancel":
            self.asked |= self.job.cancel() != "absent"
        else:
            self._bench.clock.advance(TIMEOUT_S + 1.0)

    def run(self) -> str:
        """Run it to its end: whether that is right, or what is wrong. Of a shorter run, which other events are for, nothing is said."""
        self._live()
        if len(self.acted) < len(self.events):
            return "shorter"
        if (self.asked or len(self.sent) >= WAITS) and self.job.status().state == "sleeping":
            return f"it sleeps although {self.acted} happened"
        for _ in range(WAITS):  # What still sleeps waits for what nobody sends.
            self._bench.clock.advance(TIMEOUT_S + 1.0)
            self._live()
        return self._wrong() or "right"

    def _live(self) -> None:
        self._app.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=1e6)

    def _wrong(self) -> str:
        state = self.job.status().state
        if state not in ("done", "cancelled"):
            return f"it is {state}"
        if self.did["begin"] > 1 or self.did["undo"] > 1 or self._bench.left()["steps"]:
            return f"{dict(self.did)}, {self._bench.left()}"
        if state == "cancelled":
            return "" if self.asked and self.did["begin"] == self.did["undo"] else f"cancelled, {dict(self.did)}"
        return self._wrong_result(self.job.result(timeout_s=0))

    def _wrong_result(self, taken: list[Any]) -> str:
        numbers, is_late = [one for one in taken if one != "late"], "late" in taken
        due = self.sent[:WAITS]
        # Time that passes meanwhile may end a wait before the signal is seen; otherwise each that was sent is taken.
        is_right = numbers == due[: len(numbers)] if is_late and "expire" in self.acted else numbers == due
        return "" if is_right and is_late == (len(numbers) < WAITS) else f"{taken} of {self.sent}"


def meddled(kind: type[Meddler], events: Sequence[Event]) -> str:
    """How it goes in memory."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    try:
        return Meddled(kind, events, store, clock).run()
    finally:
        store.close()
