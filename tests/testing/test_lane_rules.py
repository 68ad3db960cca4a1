"""After every step of a random history the groups of a queue are as their rule says; a store that forgets to look is found out."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest

from holdfast._sync.flows.copying import copy_all
from holdfast.commands import (
    Browse,
    Clear,
    Command,
    Configure,
    Groups,
    Settle,
    Transaction,
    endings,
    lanes,
    moving,
    objects,
    putting,
    rebuilding,
    ruled_claim,
    settling,
)
from holdfast.errors import HoldfastError
from holdfast.rates import Rate
from holdfast.records import Message
from holdfast.records.policies import Lane
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.lane_rules import broken_rules
from holdfast.testing.random_policies import RULED_MAKERS, TENANTS
from holdfast.testing.randomness import World

POLICIES: tuple[dict[str, Any], ...] = (
    {"groups": "strict"},
    {"groups": "strict", "group_dead": "hold", "max_attempts": 2},
    {"groups": "fair"},
    {"groups": "fair", "group_limit": 2, "limit": 4},
    {"groups": "fair", "group_limit": 1, "group_rate": Rate(1, per_s=2.0)},
    {"groups": "fair", "order": "lifo", "keep_done_s": 3.0},
)
STEPS = 250
KINDS = [kind for kind in RULED_MAKERS if kind not in ("policies", "move_in")]
WEIGHTS = [RULED_MAKERS[kind][1] for kind in KINDS]


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_as_their_rule_says_after_every_step(seed: int) -> None:
    assert first_fault(seed) is None


def test_groups_are_as_their_rule_says_in_a_copy() -> None:
    assert fault_in_copy() is None


def forgets(skips: Callable[[Transaction, Sequence[Message], Sequence[Message]], bool]) -> Callable[..., None]:
    """A `follow` that does nothing for some steps."""

    def follow(tx: Transaction, left: Iterable[Message], entered: Iterable[Message], number: int | None = None) -> None:
        before, after = list(left), list(entered)
        if not skips(tx, before, after):
            lanes.follow(tx, before, after, number)

    return follow


def always(_tx: Transaction, _left: Sequence[Message], _entered: Sequence[Message]) -> bool:
    return True


def died(tx: Transaction, left: Sequence[Message], entered: Sequence[Message]) -> bool:
    return not entered and any(m.state == "dead" for one in left for m in tx.messages(one.queue, [one.id]))


def done(tx: Transaction, left: Sequence[Message], entered: Sequence[Message]) -> bool:
    return not entered and not any(m.state == "dead" for one in left for m in tx.messages(one.queue, [one.id]))


def came_back(_tx: Transaction, left: Sequence[Message], entered: Sequence[Message]) -> bool:
    return bool(left and entered)


def never_saved(_tx: Transaction, _policy: object, saved: Sequence[Lane], *_rest: object) -> list[Lane]:
    return list(saved)


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "put": (putting, "follow", forgets(always)),
    "claim": (ruled_claim, "save_refreshed", never_saved),
    "settle": (settling, "follow", forgets(done)),
    "fail": (settling, "follow", forgets(came_back)),
    "bury": (settling, "follow", forgets(died)),
    "expire": (ruled_claim, "follow", forgets(always)),
    "move": (moving, "follow", forgets(came_back)),
    "cancel": (moving, "follow", forgets(done)),
    "promote": (endings, "follow", forgets(always)),
}


@pytest.mark.parametrize("forgotten", MUTANTS)
def test_control_a_store_that_forgets_to_refresh_lanes_is_found_out(monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    monkeypatch.setattr(*MUTANTS[forgotten])
    assert any(first_fault(seed) is not None for seed in range(60))


def test_control_a_store_that_forgets_lanes_with_its_messages_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "save_refreshed", never_saved)
    store = MemoryStore()
    store.execute(Configure("queue", TENANTS, groups="fair"))
    store.execute(Configure("queue", TENANTS, group="a", weight=2))
    store.execute(Clear("queue", TENANTS))
    assert store.execute(Groups(TENANTS)).lanes == []


def test_control_a_copy_that_forgets_to_refresh_lanes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "save_refreshed", never_saved)
    assert fault_in_copy() is not None


def test_control_a_lane_that_is_removed_while_messages_are_claimed_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lane, "is_gone", property(lambda lane: not lane.open and lane.wakes is None))
    assert any(first_fault(seed) is not None for seed in range(60))


def first_fault(seed: int) -> str | None:
    """What is wrong after the first step after which anything is."""
    chance, clock = Random(seed), FakeClock()
    store, world = begin(clock, chance)
    for number in range(STEPS):
        step(store, world, clock)
        faults = broken_rules(store, TENANTS, clock.now_us())
        if faults:
            return f"step {number}: {faults[0]}"
    return None


def fault_in_copy() -> str | None:
    """What is wrong in a copy of what a random history leaves."""
    for seed in range(12):
        chance, clock = Random(seed), FakeClock()
        store, world = begin(clock, chance)
        for _ in range(60):
            step(store, world, clock)
        clock.advance(60)
        held = [message.receipt for message in store.execute(Browse(TENANTS, state="leased", limit=1_000)).messages]
        store.execute(Settle(held, "ready"))
        target = MemoryStore(clock=clock)
        copy_all(store, target, "source", "target", merge=False)
        faults = broken_rules(target, TENANTS, clock.now_us())
        if faults:
            return faults[0]
    return None


def begin(clock: FakeClock, chance: Random) -> tuple[Store, World]:
    store, world = MemoryStore(clock=clock), World(chance, clock.wall_us, 0.0)
    world.can_be_late = False
    store.execute(Configure("queue", TENANTS, **chance.choice(POLICIES)))
    return store, world


def step(store: Store, world: World, clock: FakeClock) -> None:
    """One random command, whose policies for the queue as a whole stay as they are, or some time."""
    if world.chance.random() < 0.2:
        clock.advance(world.chance.choice((0.5, 1, 2, 5)))
        return
    command: Command[Any] = RULED_MAKERS[world.chance.choices(KINDS, WEIGHTS)[0]][0](world)
    if getattr(command, "drop", False):
        return
    try:
        world.learn(store.execute(command))
    except HoldfastError:
        return
