"""The sizes of a queue in LMDB cost by the smaller of the queue and all others together."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Count, Counts, Item, Put, Settle
from holdfast.stores.lmdb import LmdbStore, counts

MANY, FEW = 3_000, 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    store = LmdbStore(tmp_path / "store.lmdb", durability="process")
    for queue, count in (("a-few", FEW), ("many", MANY), ("z-few", FEW)):
        for start in range(0, count, 1_000):
            store.execute(Put(queue, [Item(str(number), Raw(b"1")) for number in range(start, min(start + 1_000, count))]))
    yield store
    store.close()


def walked(store: LmdbStore, patched: pytest.MonkeyPatch) -> int:
    """How many keys are walked to count the large queue."""
    count, seen = counts._length, list[int]()

    def length(things: Iterable[object], most: int) -> int:
        seen.append(count(things, most))
        return seen[-1]

    patched.setattr(counts, "_length", length)
    assert store.execute(Count("many")).ready == MANY
    return sum(seen)


def test_a_large_queue_is_counted_by_the_others(store: LmdbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert walked(store, monkeypatch) < 300


def test_control_counting_the_queue_itself_would_be_noticed(store: LmdbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts.Counts, "_number_outside", lambda _self, _table, _start, most: most)
    assert walked(store, monkeypatch) > MANY


def test_counts_are_exact_beside_other_queues(store: LmdbStore) -> None:
    claimed = store.execute(Claim("many", "me", 60.0, 150)).messages
    store.execute(Settle([message.receipt for message in claimed[:30]], "dead"))
    store.execute(Claim("z-few", "me", 60.0, 5))
    store.execute(Put("many", [Item(f"later-{number}", Raw(b"1"), delay_s=60.0) for number in range(120)]))
    found = {one.name: one.stats for one in store.execute(Counts()).queues}
    assert {name: (one.ready, one.delayed, one.leased, one.dead) for name, one in found.items()} == {
        "a-few": (FEW, 0, 0, 0),
        "many": (MANY - 150, 120, 120, 30),
        "z-few": (FEW - 5, 0, 5, 0),
    }
