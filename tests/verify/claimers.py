"""A process that claims and settles as badly as a process can: `python claimers.py URL QUEUE SEED MILLISECONDS`.

It acknowledges most, fails and gives back some, forgets some until their lease is over, and settles those too late. It ends when the queue
has been empty for a while. It prints a line for each that it settled too late; that one of these was accepted is an error.
"""

import random
import sys
import time

from holdfast import connect
from holdfast.commands import Claim, Count, Settle
from holdfast.records import Message
from holdfast.stores import Store

LEASE_S = 2.0
PATIENCE_S = 2 * LEASE_S
LATE_S = 1.5 * LEASE_S


class Claimer:
    """One process at work."""

    def __init__(self, store: Store, queue: str, seed: int, work_s: float) -> None:
        self.store, self.queue, self.work_s = store, queue, work_s
        self.chance = random.Random(seed)
        self.forgotten: list[tuple[float, Message]] = []

    def run(self) -> None:
        """Work until nothing is left."""
        idle_since = time.monotonic()
        while time.monotonic() - idle_since < PATIENCE_S or self.store.execute(Count(self.queue)).total:
            claimed = self.store.execute(Claim(self.queue, "claimer", LEASE_S, self.chance.choice((1, 1, 2, 5))))
            if claimed.messages:
                idle_since = time.monotonic()
                time.sleep(self.work_s)
                self.settle(claimed.messages)
            else:
                time.sleep(0.01 if claimed.due_in_s is None else min(claimed.due_in_s, 0.05))
            self.settle_too_late()

    def settle(self, messages: list[Message]) -> None:
        """End most of the claims."""
        for message in messages:
            how = self.chance.random()
            if how < 0.9:
                self.store.execute(Settle([message.receipt]))
            elif how < 0.95:
                self.store.execute(
                    Settle([message.receipt], "ready", counts=True, error="by chance", delay_s=self.chance.choice((0.0, 0.2)))
                )
            elif how < 0.99:
                self.store.execute(Settle([message.receipt], "ready", self.chance.choice(("back", "place", "front"))))
            else:
                self.forgotten.append((time.monotonic(), message))

    def settle_too_late(self) -> None:
        """Settle what was forgotten, as a process does that was paused until its lease was over."""
        while self.forgotten and time.monotonic() - self.forgotten[0][0] > LATE_S:
            (held,) = self.store.execute(Settle([self.forgotten.pop(0)[1].receipt])).held
            assert not held, "a claim was settled although its lease was over"
            print("late", flush=True)  # noqa: T201 - to whoever started it


def main(url: str, queue: str, seed: str, work_ms: str) -> None:
    store = connect(url)
    claimer = Claimer(store, queue, int(seed), int(work_ms) / 1000)
    try:
        claimer.run()
    finally:
        store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
