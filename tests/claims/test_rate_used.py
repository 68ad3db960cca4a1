"""Nearly all of a rate reaches handlers, although workers claim ahead where they may: what they give back is lost to the rate."""

import random
from pathlib import Path

from msgspec import Raw

from holdfast.commands import Claim, Configure, Item, Put, Settle
from holdfast.ids import new_id
from holdfast.rates import Rate
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of

RATE = Rate(20, per_s=1.0, burst=20)
WORKERS = 12
AHEAD = 5
TICK_S = 0.02
WAIT_S = 0.1
SECONDS = 30


class Model:
    """A worker of one job at a time that claims ahead, unless it is told to be careful, and gives back what waits for too long."""

    def __init__(self, store: Store, seed: int, *, is_heedless: bool) -> None:
        self.store, self.is_heedless = store, is_heedless
        self.chance = random.Random(seed)
        self.is_careful = False
        self.running: Message | None = None
        self.line: list[Message] = []
        self.ends_at = self.waiting_since = self.asks_at = 0.0
        self.started = 0

    def turn(self, now: float) -> None:
        """End what is over, begin what waits, claim what is wanted."""
        if self.running is not None and now >= self.ends_at:
            self.store.execute(Settle([self.running.receipt]))
            self.running = None
        if self.line and now >= self.waiting_since + WAIT_S:
            self.store.execute(Settle([message.receipt for message in self.line], "ready", "place", unstarted=True))
            self.line = []
        if self.running is None and now >= self.asks_at:
            self.begin(now)

    def begin(self, now: float) -> None:
        """Begin the next job, if there is one."""
        if not self.line:
            claimed = self.store.execute(Claim("jobs", "w", 600.0, 1 + (0 if self.is_careful else AHEAD)))
            self.is_careful = claimed.careful and not self.is_heedless
            self.line, self.waiting_since = list(claimed.messages), now
            self.asks_at = now + (claimed.due_in_s or 0.0)
        if self.line:
            self.running = self.line.pop(0)
            self.ends_at = now + self.chance.uniform(0.2, 0.8)
            self.started += 1


def used(folder: Path, *, is_heedless: bool) -> float:
    """What share of a rate handlers were started at."""
    clock = FakeClock()
    store = factory_of("memory", folder).make(clock)
    store.execute(Configure("queue", "jobs", rate=RATE))
    store.execute(Put("jobs", [Item(new_id(), Raw(b"1")) for _ in range(2 * SECONDS * RATE.count)]))
    workers = [Model(store, seed, is_heedless=is_heedless) for seed in range(WORKERS)]
    for tick in range(round(SECONDS / TICK_S)):
        for worker in workers:
            worker.turn(tick * TICK_S)
        clock.advance(TICK_S)
    store.close()
    return sum(worker.started for worker in workers) / (SECONDS * RATE.count)


def test_workers_that_are_careful_use_a_rate_up(tmp_path: Path) -> None:
    assert used(tmp_path, is_heedless=False) >= 0.98


def test_control_workers_that_claim_ahead_all_the_same_waste_much_of_it(tmp_path: Path) -> None:
    assert used(tmp_path, is_heedless=True) < 0.98
