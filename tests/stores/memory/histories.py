"""Random commands on a queue in memory."""

import random
from typing import Any

from msgspec import Raw

from holdfast.commands import (
    Claim,
    Command,
    Extend,
    Item,
    Move,
    Put,
    Settle,
)
from holdfast.records import Receipt
from holdfast.stores.memory import MemoryStore
from holdfast.testing import FakeClock


def random_command(draw: random.Random, receipts: list[Receipt]) -> Command[Any]:
    def options(**choices: list[object]) -> dict[str, Any]:
        return {name: draw.choice(some) for name, some in choices.items() if draw.random() < 0.3}

    match draw.randrange(8):
        case 0 | 1 | 2:
            more = options(
                key=["x", "y"],
                priority=[-1, 1],
                delay_s=[1.0, 5.0],
                start_within_s=[2.0],
                if_leased=["keep", "update", "buffer"],
                dead_letter=["grave"],
            )
            return Put("jobs", [Item(str(draw.randrange(60)), Raw(str(draw.random()).encode()), **more)])
        case 3 | 4:
            more = options(limit=[2, 5], key=["x"], take=[True], expired_to=["back", "front"], max_attempts=[2])
            return Claim("jobs", draw.choice("ab"), draw.choice([None, 1.0, 3.0]), **more)
        case 5 | 6:
            more = options(to=["ready", "dead"], return_to=["place", "front"], counts=[True], delay_s=[2.0])
            return Settle(draw.sample(receipts, min(len(receipts), draw.choice([1, 1, 2]))), **more)
        case _:
            return draw.choice([Extend(receipts[:1], 4.0), Move("jobs", "ready"), Move("jobs", "gone", state="ready", limit=1)])


def random_history(seed: int, steps: int = 150) -> tuple[MemoryStore, random.Random]:
    """A store with what random commands made of a queue."""
    draw, clock = random.Random(seed), FakeClock()
    store, receipts = MemoryStore(clock=clock), list[Receipt]()
    for _ in range(steps):
        command = random_command(draw, receipts)
        answer = store.execute(command)
        if isinstance(command, Claim):
            receipts = [*receipts, *(message.receipt for message in answer.messages)][-10:]
        clock.advance(draw.choice([0, 0, 0.5, 1]))
    clock.advance(1.5)  # Some leases end, which no claim has seen yet.
    return store, draw
