"""Random commands on a small world, so that they meet: few queues, keys and dicts, and receipts that were really given out."""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.commands import (
    AnyCommand,
    Change,
    Changes,
    Claim,
    Claimed,
    Clear,
    Configure,
    Extend,
    LeaseName,
    LowerFences,
    Move,
    Prune,
    Put,
    Settle,
    Together,
    Write,
)
from holdfast.commands.acquired import Acquired
from holdfast.records import Receipt, ReturnTo, State
from holdfast.testing.clock import START_US
from holdfast.testing.random_items import KEYS, item, plain_item, value
from holdfast.testing.random_leases import DICTS, SHARED, acquire, break_lease, release, renew, resize, share
from holdfast.testing.random_reads import FILTERS, cursor, look_around

QUEUES = ("one", "two")
GRAVE = "graves"
BUSY = "busy"
"""A queue that nobody limits or pauses: there the commonest commands find what they look for."""
RECENT = ("one-recent", "two-recent")
"""The dicts that remember which keys of the queues were put not long ago."""
ENTRIES = ("a", "b", "ab", "ü")
BEYOND = 2**53 - 1
"""No store gives this number out."""

PLAIN = (0.0, 0.95, 0.95, 0.95)
"""How often the commands of one history are such as programs send most: some things show only among many that are not."""

SIZES = (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3)
"""How many messages a plain command is about."""

TOPICS = (
    *("queue:one", "queue:two", f"queue:{GRAVE}", f"queue:{BUSY}", "dict:config", "dict:state"),
    *("lease::a", "lease::b", f"lease::{SHARED}"),
)


class World:
    """What a client may know: what it was given, and what it sent."""

    def __init__(self, chance: Random, wall_us: Callable[[], int] = lambda: START_US, plain: float | None = None) -> None:
        self.chance = chance
        self.wall_us = wall_us
        self._plain = chance.choice(PLAIN) if plain is None else plain
        self.receipts: list[Receipt] = []
        self.unsettled: list[Receipt] = []
        self.leases: list[LeaseName] = []
        self.waiting: list[str] = []
        self.ids: list[str] = []
        self.numbers: list[int] = [1]
        self.made: int = 0
        # Whether a message that was not started in time is still the head of its line is a store's own affair, and the front is before it.
        self.can_be_late: bool = chance.random() < 0.5

    def learn(self, answer: object) -> None:
        """Remember what an answer gives to work with later."""
        if isinstance(answer, Claimed):
            self.receipts += [message.receipt for message in answer.messages]
            self.unsettled += [message.receipt for message in answer.messages]
            self.numbers += [message.token for message in answer.messages]
        elif isinstance(answer, Acquired):
            self.leases.append(LeaseName(answer.lease.dict, answer.lease.key, answer.lease.lease_id))
            self.numbers.append(answer.lease.token)
        elif isinstance(answer, list):
            for part in answer:
                self.learn(part)

    @property
    def front(self) -> ReturnTo:
        return "place" if self.can_be_late else "front"

    def name(self) -> str:
        self.made += 1
        return f"m{self.made}"

    def number(self) -> int:
        return self.chance.choice(self.numbers[-8:])

    def fence(self) -> int:
        """A token that was given out; sometimes what is none."""
        return BEYOND if self.chance.random() < 0.1 or len(self.numbers) == 1 else self.number()

    def is_plain(self) -> bool:
        """Whether the next command is one that programs send most: so often that fast paths are judged as much as the full rules."""
        return self.chance.random() < self._plain

    def some(self, things: list[Any]) -> list[Any]:
        """A few of the newest, stale ones among them."""
        return [self.chance.choice(things[-12:]) for _ in range(self.chance.choice((1, 1, 1, 2, 4)))] if things else []


def put(world: World) -> Put:
    chance = world.chance
    if world.is_plain():
        return Put(plain_queue(world), [plain_item(world) for _ in range(chance.choice(SIZES))])
    return Put(chance.choice((*QUEUES, *QUEUES, GRAVE, BUSY)), [item(world) for _ in range(chance.choice((1, 1, 2, 5)))])


def plain_queue(world: World) -> str:
    return world.chance.choice((BUSY, BUSY, BUSY, BUSY, *QUEUES))


def claim(world: World) -> Claim:
    chance = world.chance
    if world.is_plain():
        return plain_claim(world)
    return Claim(
        chance.choice((*QUEUES, *QUEUES, GRAVE, BUSY, "morgue", "nowhere")),
        chance.choice(("ann", "bob")),
        chance.choice((None, 1, 5, 5, 30)),
        chance.choice((1, 1, 2, 5)),
        key=chance.choice((None, None, None, *KEYS)),
        take=chance.random() < 0.15,
        expired_to=chance.choice(("place", "place", "back", world.front)),
        max_attempts=chance.choice((None, None, 2)),
        dead_letter=chance.choice((None, None, GRAVE)),
    )


def plain_claim(world: World) -> Claim:
    chance = world.chance
    return Claim(plain_queue(world), chance.choice(("ann", "bob")), chance.choice((None, 30, 60, 600)), chance.choice(SIZES))


def extend(world: World) -> Extend:
    chance = world.chance
    progress = chance.random() < 0.3
    return Extend(world.some(world.receipts), chance.choice((None, 0, 5, 30)), all_or_none=chance.random() < 0.2, progress=progress)


def settle(world: World) -> AnyCommand:
    chance = world.chance
    if world.is_plain():
        return plain_settle(world) if world.unsettled else plain_claim(world)
    return Settle(
        world.some(world.receipts),
        to=chance.choice(("done", "done", "ready", "ready", "dead")),
        return_to=chance.choice(("back", "back", "place", world.front)),
        delay_s=chance.choice((0, 0, 3)),
        error=chance.choice((None, "broken", "timed out")),
        counts=chance.random() < 0.5,
        max_attempts=chance.choice((None, None, 2)),
        dead_letter=chance.choice((None, None, GRAVE)),
        all_or_none=chance.random() < 0.2,
    )


def plain_settle(world: World) -> Settle:
    """Of the newest claims that were not settled yet, which are probably still held."""
    chance = world.chance
    receipts = [world.unsettled.pop() for _ in range(min(len(world.unsettled), chance.choice(SIZES)))]
    of_one = [receipt for receipt in receipts if receipt.queue == receipts[0].queue]
    return Settle(of_one) if chance.random() < 0.8 else Settle(of_one, "ready", **given_back(world))


def given_back(world: World) -> dict[str, Any]:
    """How a claim is released or fails."""
    chance = world.chance
    if chance.random() < 0.5:
        return {"return_to": chance.choice(("back", "place", world.front))}
    return {"error": "broken", "counts": True, "max_attempts": chance.choice((None, 2)), "delay_s": chance.choice((0.0, 2.0))}


def move(world: World) -> Move:
    chance = world.chance
    to: Any = chance.choice(("ready", "ready", "dead", "gone"))
    if chance.random() < 0.3:
        return Move(chance.choice((*QUEUES, *QUEUES, GRAVE)), "due", ids=chance.sample(world.ids[-20:], min(8, len(world.ids))))
    state: State = chance.choice(("dead", "dead", "ready", "leased", "buffered"))
    return Move(
        chance.choice((*QUEUES, GRAVE, "morgue")),
        to,
        ids=chance.sample(world.ids, min(3, len(world.ids))) if chance.random() < 0.4 else None,
        state=state,
        after=cursor(world, state) if chance.random() < 0.2 else None,
        which=chance.choice(FILTERS),
        limit=chance.choice((1, 3, 1_000)),
        to_queue=chance.choice((None, "one")) if to == "ready" else None,
        delay_s=chance.choice((0, 0, 4)),
        spacing_s=chance.choice((0, 0, 1)),
        error=chance.choice((None, "by hand")),
    )


def redrive(world: World) -> Move:
    """Dead letters whose key may be taken by newer work."""
    chance = world.chance
    ids = chance.sample(world.ids[-12:], min(4, len(world.ids))) if chance.random() < 0.3 else None
    return Move(chance.choice((*QUEUES, *QUEUES, GRAVE)), "ready", ids=ids, to_queue=chance.choice((None, None, "two")))


def write(world: World) -> Write:
    chance = world.chance
    if world.is_plain() and chance.random() < 0.6:
        return Write(chance.choice(DICTS), [Change(chance.choice(ENTRIES), value=value(world))])
    keys = chance.sample(ENTRIES, chance.choice((1, 1, 2, 3)))
    return Write(chance.choice(DICTS), [change(world, key) for key in keys], all_or_none=chance.random() < 0.3)


def change(world: World, key: str) -> Change:
    chance = world.chance
    values = [Raw(json.encode(value)) for value in (None, 1, 2, 2.5, "text")]
    do: Any = chance.choice(("put", "put", "put", "delete", "increment", "compare", "pace"))
    expect: Any = chance.choice(("any", "any", "any", "absent", "present", "value", "null", "revision"))
    leases = [lease.lease_id for lease in world.leases[-4:] if lease.key == key]
    return Change(
        key,
        do=do,
        value=chance.choice(values) if do == "put" else None,
        by=chance.choice((1, -1, 0.5)) if do == "increment" else 0,
        expect=expect,
        expected=chance.choice(values) if expect == "value" else None,
        revision=chance.choice((0, world.number())) if expect == "revision" else 0,
        lease=chance.choice(leases) if leases and chance.random() < 0.3 else None,
        fence=world.fence() if chance.random() < 0.3 else None,
        ttl_s=chance.choice((None, None, None, 4)) if do != "pace" else None,
        **({"interval_us": chance.choice((333_333, 2_000_000)), "burst": 3, "cost": chance.choice((1, 1, 3))} if do == "pace" else {}),
    )


def configure(world: World) -> Configure:
    chance = world.chance
    if chance.random() < 0.2:
        return Configure("dict", chance.choice(DICTS))
    paused = chance.random() < 0.2
    return Configure("queue", chance.choice(QUEUES), paused=paused, maxsize=chance.choice((None, None, 3, 8)))


def clear(world: World) -> Clear:
    chance = world.chance
    kind: Any = chance.choice(("queue", "dict"))
    return Clear(kind, chance.choice(QUEUES if kind == "queue" else DICTS), drop=chance.random() < 0.5)


def together(world: World) -> AnyCommand:
    makers: list[Callable[[World], Any]] = [
        world.chance.choice((put, claim, settle, write, acquire, share, release, extend, move, look_around))
        for _ in range(world.chance.choice((2, 2, 3)))
    ]
    commands = [make(world) for make in makers]
    try:
        return Together(commands)
    except ValueError:  # Two of them met at one thing.
        first: AnyCommand = commands[0]
        return first


def checkpoint(world: World) -> AnyCommand:
    """What durable jobs send most: a claim, perhaps a lost one, is renewed, and an entry written."""
    chance = world.chance
    if not world.receipts:
        return write(world)
    (receipt,) = world.some(world.unsettled or world.receipts)[:1]
    renewal = Extend([receipt], chance.choice((None, 5, 30)), progress=chance.random() < 0.8)
    key = chance.choice(ENTRIES)
    row = Change(key, value=Raw(b"1")) if chance.random() < 0.8 else change(world, key)
    return Together([renewal, Write(chance.choice(DICTS), [row])])


def changes(world: World) -> Changes:
    # When a store notices that an entry is past its time is its own affair, so the logs of dicts are compared without that.
    topics = [topic for topic in TOPICS if not topic.startswith("dict:")]
    # Until the first number was given out, whether there is one is a store's own affair: a step that is refused may have drawn it.
    number = world.number() if len(world.numbers) > 1 else 0
    return Changes(world.chance.choice(topics), world.chance.choice((-1, -1, 0, number)), world.chance.choice((2, 100)))


def prune(world: World) -> Prune:
    chance = world.chance
    if chance.random() < 0.3:  # Of more events than the limit, which are dropped first is a store's own affair.
        return Prune(limit=chance.choice((1, 3)), done=chance.random() < 0.7)
    return Prune(chance.choice((3, 50)), chance.choice((0, 3_600)), done=chance.random() < 0.7)


def lower_fences(world: World) -> LowerFences:
    return LowerFences(world.chance.choice(DICTS), world.chance.choice((1, 1_000)))


MAKERS: dict[str, tuple[Callable[[World], AnyCommand], int]] = {
    "put": (put, 32),
    "claim": (claim, 24),
    "settle": (settle, 22),
    "extend": (extend, 4),
    "move": (move, 5),
    "redrive": (redrive, 14),
    "write": (write, 14),
    "acquire": (acquire, 7),
    "share": (share, 6),
    "resize": (resize, 2),
    "renew": (renew, 5),
    "release": (release, 5),
    "configure": (configure, 2),
    "clear": (clear, 1),
    "together": (together, 8),
    "checkpoint": (checkpoint, 6),
    "changes": (changes, 4),
    "prune": (prune, 1),
    "lower_fences": (lower_fences, 2),
    "break_lease": (break_lease, 2),
    "look_around": (look_around, 12),
}
"""How each kind of command is made, and how often it is."""


def named(command: AnyCommand, world: World) -> AnyCommand:
    """The same command under an id, so that it can be repeated."""
    return replace(command, id=f"c-{world.name()}")
