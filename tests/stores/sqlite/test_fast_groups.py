"""Messages of groups on the fast path of SQLite are treated as the rules say: answers and lanes are those of the memory store."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Claim, Configure, Groups, Item, Put, Settle
from holdfast.records import Receipt
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.fast import lanes as fast_lanes
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.lane_rules import broken_rules

MODES: list[dict[str, Any]] = [{"groups": "fair"}, {"groups": "fair", "group_limit": 2}, {"groups": "strict"}]
STEPS = 200


def seen(store: Store) -> list[Any]:
    """What must be alike; numbers of messages and events are each store's own."""
    ready = [(m.id, m.group, m.lane, m.level, m.rank) for m in store.execute(Browse("jobs", limit=1_000)).messages]
    leased = [(m.id, m.tied) for m in store.execute(Browse("jobs", state="leased", limit=1_000)).messages]
    lanes = [(lane.name, lane.open, lane.live, lane.credit, lane.wakes) for lane in store.execute(Groups("jobs", limit=1_000)).lanes]
    return [ready, leased, lanes]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_plain_commands_of_groups_do_what_the_rules_say(
    mode: dict[str, Any], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, clock, ends = Random(seed), FakeClock(), list[object]()
    end_claims = fast_lanes._end_claims

    def end_and_count(*given: Any) -> Any:
        ends.append(given)
        return end_claims(*given)

    monkeypatch.setattr(fast_lanes, "_end_claims", end_and_count)
    stores: list[Store] = [MemoryStore(clock=clock), SqliteStore(tmp_path / "store.db", clock=clock, durability="process")]
    held: list[list[Receipt]] = [[], []]
    for store in stores:
        store.execute(Configure("queue", "jobs", **mode))
    for step in range(STEPS):
        clock.advance(0.001)
        kind, count = chance.choice(["put", "claim", "settle"]), chance.randint(1, 3)
        items = [Item(f"{step}-{n}", Raw(b"1"), group=chance.choice([None, "a", "b", "c"])) for n in range(count)]
        for store, receipts in zip(stores, held, strict=True):
            if kind == "put":
                store.execute(Put("jobs", items))
            elif kind == "claim":
                receipts += [message.receipt for message in store.execute(Claim("jobs", "me", 600.0, count)).messages]
            elif receipts:
                assert all(store.execute(Settle(receipts[:count])).held)
                del receipts[:count]
        assert [receipt.id for receipt in held[0]] == [receipt.id for receipt in held[1]]
        assert seen(stores[0]) == seen(stores[1])
        assert broken_rules(stores[1], "jobs", clock.now_us()) == []
    assert len(ends) >= (10 if mode != MODES[0] else 0)
    for store in stores:
        store.close()
