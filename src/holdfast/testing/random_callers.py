"""Random commands that several callers send at once: of one kind and about one queue, which a store may carry out together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.commands import AnyCommand, Claim, Put, Settle
from holdfast.testing.random_items import plain_item

if TYPE_CHECKING:
    from holdfast.testing.randomness import World


def puts(world: "World", queue: str, count: int) -> Sequence[AnyCommand]:
    return [Put(queue, [plain_item(world)]) for _ in range(count)]


def claims(world: "World", queue: str, count: int) -> Sequence[AnyCommand]:
    chance = world.chance
    return [Claim(queue, chance.choice(("ann", "bob")), chance.choice((None, 30, 60))) for _ in range(count)]


def settlings(world: "World", queue: str, count: int) -> Sequence[AnyCommand]:
    """Of claims on one queue that were not settled yet, and now and then one that two callers settle."""
    newest = world.unsettled[-1].queue if world.unsettled else queue
    held = [receipt for receipt in world.unsettled if receipt.queue == newest][-count:]
    world.unsettled = [receipt for receipt in world.unsettled if receipt not in held]
    again = held[:1] if world.chance.random() < 0.2 else []
    return [Settle([receipt]) for receipt in (*again, *held)]


def at_once(world: "World", queue: str) -> Sequence[AnyCommand]:
    """What several callers ask of a queue: some put, some claim, or some settle."""
    make = world.chance.choice((puts, puts, claims, claims, settlings, settlings))
    return make(world, queue, world.chance.choice((2, 2, 3, 5)))
