"""A Ctrl-C on the way to a store across a wire: what was granted meanwhile is given back, and nothing else is done."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.commands import Acquire, Claim, Command, Look, Put, Together
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.redis import RedisStore
from holdfast.stores.undo_cancelled import finish_taking_back
from holdfast.testing.conformance.asking import JOBS, claim, item, put, stats
from tests.sentinel_databases import until
from tests.server.serving import Served
from tests.servers import own_redis_url

Crossing = RedisStore | HttpStore


@pytest.fixture(params=["redis", "http"])
def store(request: pytest.FixtureRequest) -> Iterator[Crossing]:
    served = Served(MemoryStore()) if request.param == "http" else None
    store: Crossing = HttpStore(served.url) if served else RedisStore(own_redis_url())
    yield store
    store.close()
    if served:
        served.close()


def interrupt_after_next_answer(store: Crossing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next command be carried out, and a Ctrl-C come before its answer is read."""
    connections: Any = store.connections if isinstance(store, RedisStore) else store._connections
    real = connections.send

    def interrupted(*words: Any) -> None:
        monkeypatch.undo()
        real(*words)
        raise KeyboardInterrupt

    monkeypatch.setattr(connections, "send", interrupted)


def test_a_claim_that_is_interrupted_is_given_back(store: Crossing, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "a")
    interrupt_after_next_answer(store, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        claim(store)
    until(lambda: stats(store).ready == 1)
    (message,) = claim(store)
    assert message.failures == 0


def test_a_lease_that_is_interrupted_is_given_back(store: Crossing, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after_next_answer(store, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        store.execute(Acquire(None, "name", "me", "id", 600.0))
    until(lambda: store.execute(Look(None, ["name"])).leases == [None])


def interrupted_before_it_is_sent(store: Crossing, monkeypatch: pytest.MonkeyPatch, command: Command[Any]) -> None:
    connections: Any = store.connections if isinstance(store, RedisStore) else store._connections

    def interrupted(*_: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(connections, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.execute(command)
    finish_taking_back(store)


def test_a_step_that_was_interrupted_is_not_done_afterwards(store: Crossing, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_before_it_is_sent(store, monkeypatch, Together([Put(JOBS, [item("a")]), Put("other", [item("b")])]))
    assert stats(store).total == 0


def test_a_step_that_claims_is_sent_again_to_give_back_what_it_claimed(store: Crossing, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "a")
    interrupted_before_it_is_sent(store, monkeypatch, Together([Claim(JOBS, "me", 600.0), Put("other", [item("b")])]))
    assert (stats(store).ready, stats(store, "other").total) == (1, 1)
