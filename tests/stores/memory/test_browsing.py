"""Counting and browsing in memory, and how little of it they look at."""

from collections import Counter
from statistics import mean
from typing import Any

import pytest

from holdfast.commands import (
    Browse,
    Claim,
    Count,
    Settle,
)
from holdfast.commands.filtered import cursor
from holdfast.records import Message
from holdfast.stores.memory import MemoryStore
from holdfast.stores.memory.queue import EMPTY
from holdfast.testing import FakeClock
from tests.stores.memory.acts import claim, put
from tests.stores.memory.histories import random_command, random_history


@pytest.mark.parametrize("seed", range(20))
def test_who_holds_what_is_counted_as_it_can_be_seen(seed: int) -> None:
    store, _ = random_history(seed)
    page = store.execute(Browse("jobs", state="leased", limit=1_000))
    held = [message for message in page.messages if message.held_at(page.now)]
    ages = [(page.now - message.since) / 1_000_000 for message in held]
    stats = store.execute(Count("jobs"))
    assert (stats.leased, stats.holders) == (len(held), dict(Counter(message.holder for message in held)))
    assert (stats.oldest_leased_s, stats.average_leased_s) == (
        pytest.approx(max(ages)) if ages else None,
        pytest.approx(mean(ages)) if ages else None,
    )


@pytest.mark.parametrize("state", ["ready", "leased", "dead", "buffered"])
@pytest.mark.parametrize("seed", range(5))
def test_pages_follow_one_another_though_the_queue_changes_in_between(seed: int, state: Any) -> None:
    store, draw = random_history(seed)
    after = None
    for _ in range(40):
        whole = store.execute(Browse("jobs", state=state, limit=1_000)).messages
        behind = [message for message in whole if after is None or cursor(message) > after]
        page = store.execute(Browse("jobs", state=state, after=after, limit=2))
        assert page.messages == behind[:2]
        after = page.after
        if draw.random() < 0.5:
            store.execute(random_command(draw, []))


class Watched(dict[int, Message]):
    """Messages by number that know how often somebody looked at one."""

    looks = 0

    def __getitem__(self, n: int) -> Message:
        self.looks += 1
        return super().__getitem__(n)

    def get(self, n: int, default: Any = None) -> Any:
        self.looks += 1
        return super().get(n, default)


def watched(store: MemoryStore) -> Watched:
    queue = store._tables.queues["jobs"]
    queue.messages = Watched(queue.messages)
    return queue.messages


def test_counting_looks_at_nothing_that_is_leased() -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, *map(str, range(500)))
    assert len(claim(store, limit=500)) == 500
    messages = watched(store)
    assert store.execute(Count("jobs")).leased == 500
    assert messages.looks == 0


def test_all_but_the_first_pages_look_only_at_what_they_show() -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, *map(str, range(500)))
    first = store.execute(Browse("jobs", limit=10))
    second = store.execute(Browse("jobs", after=first.after, limit=10))
    messages = watched(store)
    third = store.execute(Browse("jobs", after=second.after, limit=10))
    assert [message.id for message in third.messages] == [str(number) for number in range(20, 30)]
    assert messages.looks <= 30, "each for its place, and to show it"


@pytest.mark.parametrize("state", ["ready", "leased", "dead"])
def test_pages_of_a_queue_that_changes_look_only_at_what_they_show(state: Any) -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, *map(str, range(500)))
    if state != "ready":
        claimed = store.execute(Claim("jobs", "me", 60.0, 500)).messages
        if state == "dead":
            store.execute(Settle([message.receipt for message in claimed], "dead"))
    first = store.execute(Browse("jobs", state=state, limit=10))
    put(store, "new")
    messages = watched(store)
    second = store.execute(Browse("jobs", state=state, after=first.after, limit=10))
    assert [message.id for message in second.messages] == [str(number) for number in range(10, 20)]
    assert messages.looks <= 30


def test_control_sorting_all_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.memory.messages.page_behind", lambda *_: None)
    store = MemoryStore(clock=FakeClock())
    put(store, *map(str, range(500)))
    first = store.execute(Browse("jobs", limit=10))
    messages = watched(store)
    store.execute(Browse("jobs", after=first.after, limit=10))
    assert messages.looks > 500


def test_who_holds_nothing_any_more_is_forgotten() -> None:
    store = MemoryStore(clock=FakeClock())
    for number in range(500):
        put(store, str(number))
        (message,) = store.execute(Claim("jobs", f"holder-{number}")).messages
        store.execute(Settle([message.receipt]))
    assert len(store._tables.queues["jobs"].holders) <= 2 * EMPTY


# Threads, tasks, forks and the end
