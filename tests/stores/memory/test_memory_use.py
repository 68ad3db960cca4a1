"""What passed through a memory store leaves nothing behind, and its log no more than it retains."""

import pytest
from msgspec import json

from holdfast.commands import (
    Changes,
    Extend,
    Settle,
)
from holdfast.commands.allowance import Allowance
from holdfast.errors import Compacted
from holdfast.stores.memory import MemoryStore
from holdfast.stores.memory.log import Log
from holdfast.stores.memory.schedule import SPARE
from holdfast.testing import FakeClock
from tests.stores.memory.acts import claim, put


def test_a_queue_keeps_nothing_of_what_passed_through_it() -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, "held", priority=1)
    claim(store)
    for n in range(2_000):
        put(store, str(n), priority=n)
        store.execute(Settle([message.receipt for message in claim(store)]))
    queue = store._tables.queues["jobs"]
    assert len(queue.lines) <= 64
    assert len(queue.ends.line) + len(queue.ends.heap) <= 2 + SPARE
    assert len(queue.ids) == len(store._tables.messages) == 1


def test_updating_a_waiting_key_leaves_nothing_behind() -> None:
    store = MemoryStore(clock=FakeClock())
    for n in range(1_000):
        put(store, str(n), key="k")
    queue = store._tables.queues["jobs"]
    assert len(queue.lines[0].line) + len(queue.lines[0].heap) == 1


def test_a_renewed_lease_leaves_a_bounded_trace() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    put(store, "a", "b")
    held = [claim(store)[0], claim(store)[0]]
    for _ in range(1_000):
        clock.advance(1)
        store.execute(Extend([message.receipt for message in held], 30.0))
    ends = store._tables.queues["jobs"].ends
    assert len(ends.line) + len(ends.heap) <= 2 * 2 + SPARE


def test_events_beyond_what_is_retained_go_little_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.memory.log.RETAINED", 300)
    log, now = Log(by_reference=False), 0
    for n in range(10_000):
        log.append("busy", "put", {"n": n}, now)
        log.append(f"quiet-{n}", "put", {}, now)
        now += 1_000_000
        if n % 50 == 0:
            log.prune(300, now - 1_000_000_000, now - 120_000_000, 200)
    assert len(log.topics["busy"]) <= 400
    assert len(log.topics) <= 1_300
    assert log.floor("busy") > 0


def test_nothing_younger_than_two_minutes_is_dropped_on_the_way() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    for n in range(2_000):
        put(store, str(n))
    assert len(store.execute(Changes("queue:jobs", limit=9_999)).events) == 2_000
    clock.advance(86_400 + 1)
    for n in range(2_000, 4_000):
        put(store, str(n))
    assert [json.decode(event.data)["ids"] for event in store.execute(Changes("queue:jobs", limit=9_999)).events] == [
        [str(n)] for n in range(2_000, 4_000)
    ]


def test_what_a_page_of_events_begins_with_is_found_in_a_long_log() -> None:
    log = Log(by_reference=False)
    for n in range(1, 1_001):
        log.append("t" if n % 2 else "other", "put", {"n": n}, 0)
    events, upto = log.read("t", 500, 3, Allowance())
    assert ([event.index for event in events], upto) == ([501, 503, 505], 505)
    assert log.read("t", 999, 3, Allowance()) == ([], 1_000)


# Values


def test_a_store_that_keeps_no_events_says_that_they_are_gone() -> None:
    store = MemoryStore(keeps_events=False)
    put(store, "a")
    claim(store)
    assert store.execute(Changes("queue:jobs")).events == []
    with pytest.raises(Compacted):
        store.execute(Changes("queue:jobs", 0))
