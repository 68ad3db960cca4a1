"""The shorter ways of the memory store answer as the rules of the commands do."""

import random
from typing import Any, cast

import pytest

from holdfast.commands import (
    Browse,
    Changes,
    Claim,
    Count,
)
from holdfast.records import Receipt
from holdfast.stores.memory import MemoryStore
from holdfast.testing import FakeClock
from tests.stores.memory.histories import random_command


def native_and_generic(clock: FakeClock) -> tuple[MemoryStore, MemoryStore]:
    plain = MemoryStore(clock=clock)
    plain._fast = {}
    return MemoryStore(clock=clock), plain


def state(store: MemoryStore) -> list[object]:
    states = [store.execute(Browse("jobs", state=cast("Any", state), limit=1_000)) for state in ("ready", "leased", "dead", "buffered")]
    return [*states, store.execute(Count("jobs")), store.execute(Changes("queue:jobs")), store.execute(Changes("queue:grave"))]


@pytest.mark.parametrize("seed", range(40))
def test_native_answers_are_those_of_the_commands_own_rules(seed: int) -> None:
    draw, clock = random.Random(seed), FakeClock()
    native, plain = native_and_generic(clock)
    receipts: list[Receipt] = []
    for _ in range(300):
        command = random_command(draw, receipts)
        answer = native.execute(command)
        assert answer == plain.execute(command)
        if isinstance(command, Claim):
            receipts = [*receipts, *(message.receipt for message in answer.messages)][-10:]
        clock.advance(draw.choice([0, 0, 0.5, 1]))
    assert state(native) == state(plain)
