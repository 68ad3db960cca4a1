"""An async store behind the sync face that the suite asks: nobody is left waiting on a loop that ended."""

import threading

import pytest

from holdfast.commands import Count
from holdfast.errors import Closed
from holdfast.stores.memory import AsyncMemoryStore, MemoryStore
from holdfast.testing.aio import LoopStore
from holdfast.testing.conformance.threads import PATIENCE_S


def test_who_asks_between_the_loops_last_turn_and_its_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = LoopStore(lambda: AsyncMemoryStore(MemoryStore()))
    refused = threading.Event()
    close = store._loop.close

    def ask() -> None:
        with pytest.raises(Closed):
            store.execute(Count("jobs"))
        refused.set()

    def ask_first() -> None:
        threading.Thread(target=ask, daemon=True).start()
        refused.wait(PATIENCE_S)
        close()

    monkeypatch.setattr(store._loop, "close", ask_first)
    store.close()
    assert refused.is_set(), "it was left with a loop that does not run"
