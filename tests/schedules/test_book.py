"""A ticker reads all schedules once, and then what changed; it knows at each moment what a reading of all would tell."""

import random
from typing import Any

import pytest

from holdfast._sync.flows.schedule_book import ScheduleBook, schedules_of
from holdfast._sync.handles.schedule import Schedule
from holdfast.client import ControlPlaneClient
from holdfast.commands import Clear, Prune, Read
from holdfast.schedules.entries import SCHEDULES
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.workers.detours import Detour


class Seen:
    """A store that counts the entries that are read from it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore(clock=self.clock)
        self.client = ControlPlaneClient.on(self.inner)
        self.read = 0
        self.store: Any = Detour(self.inner, self._execute)

    def _execute(self, command: Any) -> Any:
        answer = self.inner.execute(command)
        self.read += len(answer.entries) if isinstance(command, Read) else 0
        return answer

    def save(self, number: int, seconds: int = 60) -> None:
        Schedule(f"s{number}", f"every {seconds} s", ("jobs", number), client=self.client).save()

    def all(self) -> dict[str, Any]:
        return {stored.name: stored for stored in schedules_of(self.inner)}


def test_after_the_first_time_only_what_changed_is_read() -> None:
    seen = Seen()
    for number in range(100):
        seen.save(number)
    book = ScheduleBook(seen.store)
    assert book.read() == seen.all()
    assert seen.read == 100
    seen.save(3, 120)
    Schedule.from_name("s4", client=seen.client).delete()
    seen.save(100)
    assert book.read() == seen.all()
    assert seen.read == 102
    assert book.read() == seen.all()
    assert seen.read == 102


@pytest.mark.parametrize("seed", range(3))
def test_it_knows_what_a_reading_of_all_would_tell_whatever_happens(seed: int) -> None:
    rng, seen = random.Random(seed), Seen()
    book = ScheduleBook(seen.store)
    for _ in range(200):
        match rng.randrange(20):
            case 0:
                seen.inner.execute(Clear("dict", SCHEDULES))
            case 1:  # The log forgets what the book does not know yet.
                seen.clock.advance(1_000.0)
                seen.inner.execute(Prune(keep=0, keep_s=0.0))
            case 2 | 3 | 4:
                Schedule.from_name(f"s{rng.randrange(10)}", client=seen.client).delete()
            case 5 | 6:
                assert book.read() == seen.all()
            case _:
                seen.save(rng.randrange(10), rng.randrange(1, 9) * 60)
    assert book.read() == seen.all()


def test_control_who_misses_what_changed_knows_less(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    seen.save(1)
    book = ScheduleBook(seen.store)
    book.read()
    monkeypatch.setattr(book, "_follow", lambda index: index is not None)
    seen.save(2)
    assert book.read() != seen.all()
