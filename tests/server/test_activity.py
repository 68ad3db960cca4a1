"""The activity of queues, asked for again and again: only what came since is read."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from holdfast._sync.flows.rating import queues_activity
from holdfast.commands import Changes, Prune, Put, Together
from holdfast.server.namespaces.names import Namespace
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import claim, item, put, settle
from holdfast.views.log_rates import LogMemory
from tests.server.serving import Served, ask

OFTEN = 1_500


class Counting(MemoryStore):
    """Counts the events that are read."""

    read = 0

    def execute(self, command: Any) -> Any:
        answer = super().execute(command)
        self.read += len(answer.events) if isinstance(command, Changes) else 0
        return answer


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Counting]:
    store = Counting(clock=clock)
    yield store
    store.close()


def events_read(store: Counting, memory: LogMemory, *queues: str, since_s: float = 600.0) -> int:
    before = store.read
    queues_activity(store, queues or ("jobs",), since_s, memory)
    return store.read - before


def fill(store: Counting, queue: str = "jobs") -> None:
    for start in range(0, OFTEN, 500):
        store.execute(Together([Put(queue, [item(f"{number}")]) for number in range(start, start + 500)]))


def test_what_came_since_is_read_and_nothing_else(store: Counting) -> None:
    fill(store)
    memory = LogMemory()
    assert events_read(store, LogMemory()) >= OFTEN, "control: what nobody remembers is read"
    assert events_read(store, memory) >= OFTEN
    assert events_read(store, memory) == 0
    put(store, "a", "b")
    assert events_read(store, memory) == 1
    assert events_read(store, memory, since_s=60.0) == 0, "a shorter time is a part of it"
    assert events_read(store, memory, "jobs", "other") == 0
    assert events_read(store, memory, since_s=700.0) > OFTEN, "a longer time is not"


def test_what_is_remembered_says_the_same_as_what_is_read(store: Counting, clock: FakeClock) -> None:
    chance, memory = Random(18), LogMemory()
    for number in range(200):
        put(store, f"a{number}", queue=chance.choice(("jobs", "other")))
        settle(store, claim(store, chance.choice((1, 2))), to=chance.choice(("done", "ready", "dead")))
        clock.advance(chance.choice((0, 0.5, 3)))
        if number % 50 == 49:
            store.execute(Prune(keep=20, keep_s=0))
        if number % 10 == 9:
            asked = (store, ("jobs", "other"), 60.0)
            assert queues_activity(*asked, memory) == queues_activity(*asked, LogMemory())


def test_no_more_is_remembered_than_there_is_room_for(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.views.log_rates.KEPT_BYTES", 1.5 * OFTEN * 600)
    for queue in ("jobs", "other"):
        fill(store, queue)
    memory = LogMemory()
    assert events_read(store, memory, "jobs") >= OFTEN
    assert events_read(store, memory, "other") >= OFTEN
    assert events_read(store, memory, "other") == 0
    assert events_read(store, memory, "jobs") >= OFTEN, "that of a queue which was not asked for meanwhile is forgotten"


def test_queues_of_one_name_in_two_namespaces_are_told_apart(store: Counting) -> None:
    served = Served(store)
    put(store, "a")
    put(store, "b", "c", queue=Namespace.named("acme").inside("jobs"))
    for _ in range(2):
        found = [sum(ask(served, f"{prefix}/v1/activity", {"queues": ["jobs"]})[1]["put"]) for prefix in ("", "/ns/acme")]
        assert found == [1, 2]
    served.close()
