"""Giving back what cancelled callers were granted: all of it, by few threads."""

import threading
from typing import Any

from holdfast.commands import Claim, Command
from holdfast.stores.memory import MemoryStore
from holdfast.stores.undo_cancelled import MOST, finish_taking_back, take_back
from holdfast.testing.conformance.asking import JOBS, put, stats
from tests.sentinel_databases import until


class Gate(MemoryStore):
    """A store that answers when it is let, and knows how many wait."""

    def __init__(self) -> None:
        super().__init__()
        self.opens = threading.Event()
        self.asking: set[int] = set()

    def execute(self, command: Command[Any]) -> Any:
        self.asking.add(threading.get_ident())
        assert self.opens.wait(60)
        return super().execute(command)


def test_many_that_are_cancelled_at_once_are_given_back_by_few_threads() -> None:
    store = Gate()
    store.opens.set()
    put(store, *(f"job-{number}" for number in range(100)))
    claims = [Claim(JOBS, "me", 3_600.0, id=f"claim-{number}") for number in range(100)]
    for claim in claims:
        store.execute(claim)
    store.opens.clear()
    store.asking.clear()
    for claim in claims:
        take_back(store, claim)
    until(lambda: len(store.asking) == MOST)
    store.opens.set()
    until(lambda: stats(store).ready == 100)
    finish_taking_back(store)
    assert len(store.asking - {threading.get_ident()}) == MOST
    store.close()
