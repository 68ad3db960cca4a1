"""Waiting in memory: every hint arrives, so an idle waiter sleeps."""

import asyncio

from holdfast._async.flows import claiming as claiming_async
from holdfast._sync.flows import claiming
from holdfast.commands import Claim, Command
from holdfast.stores.memory import MemoryStore


class Counting(MemoryStore):
    """Counts what it is asked."""

    asked = 0

    def _run(self, command: Command[object]) -> object:  # type: ignore[override]
        self.asked += 1
        return super()._run(command)


NOBODY = Claim("jobs", "w", 10.0)


def test_an_idle_thread_does_not_poll() -> None:
    store = Counting()
    claiming.claim_since(store, NOBODY, 0.1, poll_s=0.001)
    assert store.asked < 10


def test_nor_does_an_idle_task() -> None:
    store = Counting()
    asyncio.run(claiming_async.claim_since(store.for_tasks(), NOBODY, 0.1, poll_s=0.001))
    assert store.asked < 10
