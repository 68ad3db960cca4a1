"""Random commands that read, of what the answers before gave to ask for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.commands import Browse, Count, Counts, Filter, Leases, Length, Look, Names, Read
from holdfast.commands.stats import Place
from holdfast.commands.together import Step
from holdfast.commands.transaction import Cursor
from holdfast.records import State
from holdfast.testing.random_items import KEYS
from holdfast.testing.random_leases import DICTS, LEASES
from holdfast.testing.random_policies import TENANTS, groups

if TYPE_CHECKING:
    from holdfast.testing.randomness import World

QUEUES = ("one", "one", "two", "graves", "busy", "morgue", TENANTS)
LINED: tuple[State, ...] = ("ready", "ready", "leased", "buffered", "dead", "done")
FILTERS = (
    *(Filter(), Filter(older_than_s=3), Filter(error_contains="roke"), Filter(key_prefix='"'), Filter(label="red")),
    *(Filter(newer_than_s=3), Filter(error_class="broken"), Filter(value_contains="1"), Filter(group="a"), Filter(group="")),
)
PREFIXES = ("", "", "", "a", "one", "t", "x")
BEHIND = (None, None, None, "a", "one", "ü")
"""Names and keys to go on from."""
LIMITS = (1, 2, 100)


def browse(world: "World") -> Browse:
    chance = world.chance
    queue, how = chance.choice(QUEUES), chance.random()
    if how < 0.25:
        return Browse(queue, ids=chance.sample(world.ids[-20:], min(3, len(world.ids))))
    if how < 0.4:
        return Browse(queue, keys=chance.sample(KEYS, 2))
    state = chance.choice(LINED)
    after = cursor(world, state) if chance.random() < 0.3 else None
    return Browse(queue, state=state, which=chance.choice(FILTERS), after=after, limit=chance.choice(LIMITS))


def cursor(world: "World", state: State) -> Cursor:
    """A place in the line of a state, before or behind all that stands there: which number a store gave each is its own affair."""
    chance = world.chance
    moment = world.wall_us() + chance.choice((-10, -2, 0, 2, 30)) * 1_000_000
    number = chance.choice((0, 2**53 - 1))
    if state == "buffered":
        return (chance.choice(KEYS), 2**53 - 1)  # A key has one copy, and some stores look at the key alone.
    return (chance.choice((-1, 0, 0)), moment, number) if state == "ready" else (moment, number)


def count(world: "World") -> Count:
    chance = world.chance
    state = chance.choice(LINED)
    return Count(chance.choice(QUEUES), chance.choice(FILTERS), Place(state, cursor(world, state)) if chance.random() < 0.3 else None)


def counts(world: "World") -> Counts:
    return Counts(**page(world))


def names(world: "World") -> Names:
    kind: Any = world.chance.choice(("queue", "dict"))
    return Names(kind, **page(world), exact=world.chance.random() < 0.2)


def page(world: "World") -> dict[str, Any]:
    chance = world.chance
    return {"prefix": chance.choice(PREFIXES), "after": chance.choice(BEHIND), "limit": chance.choice(LIMITS)}


def leases(world: "World") -> Leases:
    # All on one page: a short one may show fewer, by how many names the store still knows whose leases have ended.
    asked = page(world) | {"limit": world.chance.choice((100, 1_000))}
    return Leases(world.chance.choice((None, None, *DICTS)), **asked)


def look(world: "World") -> Look:
    chance = world.chance
    return Look(chance.choice((None, None, *DICTS)), chance.sample(LEASES, chance.choice((1, 2))))


def read(world: "World") -> Read:
    chance = world.chance
    of, anchor = chance.choice(DICTS), chance.random() < 0.3
    if chance.random() < 0.5:
        return Read(of, keys=chance.sample(("a", "b", "ab", "ü", "nowhere"), 2), anchor=anchor)
    return Read(of, **page(world), anchor=anchor)


def length(world: "World") -> Length:
    return Length(world.chance.choice(DICTS))


READERS: tuple[Callable[["World"], Step], ...] = (browse, browse, count, counts, groups, leases, length, look, names, read, read)


def look_around(world: "World") -> Step:
    """Any command that reads."""
    return world.chance.choice(READERS)(world)
