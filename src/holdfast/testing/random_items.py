"""Random items to put, some plain and some with every option."""

from typing import TYPE_CHECKING, Any

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.commands import Item
from holdfast.commands.putting import IfReady

if TYPE_CHECKING:
    from holdfast.testing.randomness import World

KEYS = ('"a"', '"b"', "7")
LABELS: tuple[tuple[str, ...], ...] = ((), (), (), ("red",), ("red", "ü"))


def plain_item(world: "World") -> Item:
    chance = world.chance
    world.ids.append(chance.choice(world.ids[-10:]) if world.ids and chance.random() < 0.02 else world.name())
    plain = Item(world.ids[-1], value(world), priority=chance.choice((0, 0, 0, 0, 1)))
    return plain if chance.random() < 0.8 else replace(plain, **options(world))


def options(world: "World") -> dict[str, Any]:
    """What a message without a key may be put with."""
    chance = world.chance
    return {
        "delay_s": chance.choice((0.0, 0.0, 0.0, 2.0)),
        "max_attempts": chance.choice((None, 1, 3)),
        "dead_letter": chance.choice((None, "morgue")),
        "metadata": chance.choice((None, Raw(b'{"from":"us"}'))),
        "labels": chance.choice(LABELS),
    }


def value(world: "World") -> Raw:
    return Raw(json.encode(world.chance.choice((None, 1, "text", {"n": [world.chance.randint(0, 9)]}))))


def item(world: "World") -> Item:
    chance = world.chance
    world.ids.append(chance.choice(world.ids[-10:]) if world.ids and chance.random() < 0.1 else world.name())
    key = chance.choice((None, *KEYS))
    if_ready: IfReady = chance.choice(("update", "keep", "reject", "postpone", "postpone")) if chance.random() < 0.4 else "update"
    unique_for_s = chance.choice((2, 10)) if key is not None and chance.random() < 0.2 else None
    return Item(
        world.ids[-1],
        value(world),
        key=key,
        if_ready=if_ready,
        if_leased=chance.choice(("buffer", "update", "keep", "reject")) if chance.random() < 0.5 else "buffer",
        delay_s=chance.choice((0, 0, 0, 2, 10)),
        at=world.wall_us() + chance.choice((-2, 0, 3)) * 1_000_000 if chance.random() < 0.15 else None,
        priority=chance.choice((0, 0, 0, 1, -1)),
        max_attempts=chance.choice((None, None, 1, 2)),
        dead_letter=chance.choice((None, None, "morgue")),
        start_within_s=chance.choice((None, None, None, 5)) if world.can_be_late else None,
        metadata=chance.choice((None, Raw(b'{"from":"us"}'))),
        labels=chance.choice(LABELS),
        if_id=chance.choice(("ignore", "ignore", "reject")),
        at_latest_s=chance.choice((None, 0, 4)) if if_ready == "postpone" else None,
        unique_for_s=unique_for_s,
        if_recent=chance.choice(("keep", "keep", "reject")) if unique_for_s is not None else "keep",
    )
