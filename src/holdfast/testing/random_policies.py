"""Random commands on a queue with groups and policies."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.backoff import Backoff
from holdfast.commands import AnyCommand, Claim, Clear, Configure, Filter, Groups, Move, Put, Settle, Together
from holdfast.rates import Rate
from holdfast.testing.random_items import KEYS, item, plain_item

if TYPE_CHECKING:
    from holdfast.testing.randomness import World

TENANTS = "tenants"
"""The queue whose policies change."""
GROUPS = (None, "a", "b", "b", "ü")
RATES = (None, None, Rate(1, per_s=1.0), Rate(3, per_s=2.0, burst=2))


UNGATED: dict[str, Any] = {
    **dict.fromkeys(("limit", "rate", "group_rate", "aging_s", "keep_done_s", "maxsize")),
    "order": "fifo",
    "paused": False,
    "throttle_s": 0.0,
}
"""Policies under which nothing but its groups decides what a queue hands out."""


def policies(world: "World") -> Configure:
    """Change a policy of the queue, or several; often so that fast paths may be taken."""
    chance = world.chance
    if world.is_plain() and chance.random() < 0.7:
        if chance.random() < 0.3:
            return Configure("queue", TENANTS, groups="strict", group_limit=None, **UNGATED)
        return Configure("queue", TENANTS, groups="fair", group_limit=chance.choice((None, None, 2)), **UNGATED)
    kinds: dict[str, tuple[Any, ...]] = {
        "groups": ("fair", "fair", "fair", "strict", "strict", "strict", None),
        "group_limit": (None, None, 1, 2),
        "group_rate": RATES,
        "group_dead": ("pass", "hold"),
        "limit": (None, None, 2, 4),
        "rate": RATES,
        "order": ("fifo", "fifo", "lifo"),
        "aging_s": (None, None, 2.0),
        "max_attempts": (None, 2),
        "dead_letter": (None, "morgue"),
        "lease_s": (None, 4.0),
        "backoff": (None, Backoff(1.0, most_s=3.0), Backoff(0.5, jitter=0.0)),
        "late_to": ("drop", "dead"),
        "keep_done_s": (None, 3.0, 30.0),
        "throttle_s": (0.0, 0.0, 2.0),
        "paused": (False, False, False, True),
        "maxsize": (None, None, None, 9),
    }
    given = {*chance.sample(list(kinds), chance.choice((1, 1, 2, 3))), *(["groups"] if chance.random() < 0.7 else [])}
    return Configure("queue", TENANTS, **{name: chance.choice(kinds[name]) for name in sorted(given)})


def group_settings(world: "World") -> Configure:
    chance = world.chance
    given: dict[str, Any] = {
        "limit": chance.choice((None, 1, 2)),
        "weight": chance.choice((1, 2, 3)),
        "rate": chance.choice(RATES),
        "paused": chance.random() < 0.3,
        "throttle_s": chance.choice((0.0, 2.0)),
        "forget": chance.random() < 0.5,
    }
    chosen = chance.sample(list(given), chance.choice((1, 2)))
    return Configure("queue", TENANTS, group=chance.choice(GROUPS) or "", **{name: given[name] for name in chosen})


def put_grouped(world: "World") -> Put:
    chance = world.chance
    make = plain_item if world.is_plain() or chance.random() < 0.3 else item
    return Put(TENANTS, [replace(make(world), group=chance.choice(GROUPS)) for _ in range(chance.choice((1, 1, 2, 4)))])


def claim_grouped(world: "World") -> Claim:
    chance = world.chance
    if world.is_plain() and chance.random() < 0.8:
        return Claim(TENANTS, chance.choice(("ann", "bob")), chance.choice((None, 30, 60)), chance.choice((1, 1, 1, 2)))
    return Claim(
        TENANTS,
        chance.choice(("ann", "bob")),
        chance.choice((None, 1, 5, 30)),
        chance.choice((1, 1, 2, 5)),
        key=chance.choice((None, None, None, None, None, *KEYS)),
        take=chance.random() < 0.1,
        expired_to=chance.choice(("place", "place", "back", world.front)),
        max_attempts=chance.choice((None, None, 2)),
        by_policy=chance.random() < 0.3,
    )


def settle_grouped(world: "World") -> Settle:
    chance = world.chance
    held = [receipt for receipt in world.unsettled if receipt.queue == TENANTS]
    if held and world.is_plain() and chance.random() < 0.8:
        world.unsettled.remove(held[-1])
        return Settle(held[-1:])
    to: Any = chance.choice(("done", "done", "done", "ready", "ready", "dead"))
    # Half of the time claims that were not settled yet, so that something comes of it.
    newest = [world.unsettled.pop() for _ in range(min(len(world.unsettled), chance.choice((1, 1, 2))))] if chance.random() < 0.5 else []
    return Settle(
        newest or world.some(world.unsettled or world.receipts),
        to=to,
        return_to=chance.choice(("back", "place", world.front)),
        delay_s=chance.choice((UNSET, UNSET, 0.0, 3.0)),
        error=chance.choice((None, "broken")),
        counts=chance.random() < 0.5,
        unstarted=to == "ready" and chance.random() < 0.4,
        trace=chance.choice((None, None, "line 1")),
    )


def settle_and_claim(world: "World") -> AnyCommand:
    """What a worker does that has finished one message and wants the next."""
    settled, claimed = settle_grouped(world), claim_grouped(world)
    try:
        return Together([settled, claimed])
    except ValueError:  # Two of them met at one thing.
        return settled


def move_grouped(world: "World") -> Move:
    chance = world.chance
    to: Any = chance.choice(("ready", "ready", "dead", "gone", "due"))
    by_id = to == "due" or chance.random() < 0.5
    return Move(
        TENANTS,
        to,
        ids=chance.sample(world.ids[-20:], min(4, len(world.ids))) if by_id else None,
        state=chance.choice(("dead", "ready", "leased", "done", "buffered")),
        which=chance.choice((Filter(), Filter(group="a"), Filter(group=""))),
        limit=chance.choice((1, 3, 1_000)),
        to_queue=chance.choice((None, None, "one")) if to == "ready" else None,
    )


def move_in(world: "World") -> Move:
    """From a queue without groups."""
    return Move(world.chance.choice(("one", "two", "graves")), "ready", state="dead", to_queue=TENANTS, limit=2)


def groups(world: "World") -> Groups:
    chance = world.chance
    return Groups(
        chance.choice((TENANTS, TENANTS, TENANTS, "one")),
        chance.choice(("", "", "b")),
        chance.choice((None, None, "", "a")),
        chance.choice((1, 100)),
        exact=chance.random() < 0.3,
    )


def clear_grouped(world: "World") -> Clear:
    chance = world.chance
    if chance.random() < 0.5:
        return Clear("dict", "state", prefix=chance.choice(("a", "", "ü")))
    return Clear("queue", TENANTS, drop=chance.random() < 0.3)


RULED_MAKERS: dict[str, tuple[Callable[["World"], AnyCommand], int]] = {
    "policies": (policies, 7),
    "group_settings": (group_settings, 4),
    "put_grouped": (put_grouped, 26),
    "claim_grouped": (claim_grouped, 22),
    "settle_grouped": (settle_grouped, 18),
    "settle_and_claim": (settle_and_claim, 6),
    "move_grouped": (move_grouped, 5),
    "move_in": (move_in, 1),
    "groups": (groups, 2),
    "clear_grouped": (clear_grouped, 1),
}
"""How each kind of command is made on stores that have groups and policies, and how often it is."""
