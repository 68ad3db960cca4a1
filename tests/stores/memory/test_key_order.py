"""The order of a dict's keys is worked out when it is asked for, and a few new keys cost little then."""

import builtins
import random
from typing import Any

import pytest
from msgspec import Raw

from holdfast.records import Entry
from holdfast.stores.memory import dicts
from holdfast.stores.memory.dicts import MemoryDict


def entry(key: str) -> Entry:
    return Entry("d", key, Raw(b"1"), 1)


def test_keys_come_in_order_however_many_are_new() -> None:
    chosen, found, there = random.Random(5), MemoryDict(), set[str]()
    for _ in range(300):
        for _ in range(chosen.choice((0, 1, 2, 200))):
            key = f"{chosen.randrange(3_000):04}"
            if chosen.random() < 0.6:
                found.enter(entry(key))
                there.add(key)
            else:
                found.leave(key)
                there.discard(key)
        prefix = str(chosen.randrange(3))
        assert [one.key for one in found.in_order(prefix, None)] == sorted(key for key in there if key.startswith(prefix))


@pytest.mark.parametrize("little", [dicts.LITTLE, 1_000_000])
def test_one_new_key_does_not_sort_all_of_them(monkeypatch: Any, little: int) -> None:
    sorts: list[int] = []

    def counted(keys: Any) -> list[Any]:
        sorts.append(len(keys))
        return builtins.sorted(keys)

    monkeypatch.setattr(dicts, "LITTLE", little)
    monkeypatch.setattr(dicts, "sorted", counted, raising=False)
    found = MemoryDict()
    for number in range(1_000):
        found.enter(entry(f"a{number}"))
    for number in range(50):
        found.enter(entry(f"b{number}"))
        assert len(list(found.in_order("b", None))) == number + 1
    # The control sorts each time.
    assert len(sorts) == (1 if little < 1_000 else 50)
