"""Messages on Redis: the short ways and the rules read what the others wrote, in whatever order a message comes by them."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from holdfast.commands import Browse, Claim, Command, Count, Extend, Item, Move, Put, Settle, Together
from holdfast.records import Message
from holdfast.stores.redis import RedisStore
from holdfast.testing.conformance.asking import item
from tests.servers import own_redis_url

OnQueues = Put | Claim | Settle
Way = Callable[[RedisStore, OnQueues], Any]


def short_way(store: RedisStore, command: OnQueues) -> Any:
    return store.execute(cast("Command[Any]", command))


def by_the_rules(store: RedisStore, command: OnQueues) -> Any:
    """A step of one command, which knows no short way."""
    return store.execute(Together([command]))[0]


WAYS = (short_way, by_the_rules)


@pytest.fixture
def store() -> Iterator[RedisStore]:
    store = RedisStore(own_redis_url())
    store.execute(Put("jobs", [item("first", "creates the queue")]))
    store.execute(Claim("jobs", take=True))
    yield store
    store.close()


def leftovers(store: RedisStore) -> list[bytes]:
    """The messages, or pieces of them, that are still kept."""
    _, (_, _, key, *_) = store.words(Count("jobs"))
    assert isinstance(key, str)
    (fields,) = store.connections.ask(("HKEYS", key + ":messages"))
    found: list[bytes] = fields
    return found


def claim_one(store: RedisStore, way: Way) -> Message:
    message: Message
    (message,) = way(store, Claim("jobs", "me", 60.0)).messages
    assert [message] == store.execute(Browse("jobs", ids=[message.id])).messages
    return message


@pytest.mark.parametrize("putting", WAYS)
@pytest.mark.parametrize("claiming", WAYS)
@pytest.mark.parametrize("settling", WAYS)
def test_a_message_is_put_claimed_and_settled_by_any_ways(store: RedisStore, putting: Way, claiming: Way, settling: Way) -> None:
    putting(store, Put("jobs", [item("a", "é" * 300)]))
    message = claim_one(store, claiming)
    assert (message.id, message.value, message.attempts, message.state) == ("a", item("a", "é" * 300).value, 1, "leased")
    assert settling(store, Settle([message.receipt])).held == [True]
    assert leftovers(store) == []


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("settling", WAYS)
def test_a_message_that_came_back_is_claimed_with_all_that_became_of_it(store: RedisStore, first: Way, second: Way, settling: Way) -> None:
    store.execute(Put("jobs", [item("a", "x")]))
    store.execute(Settle([claim_one(store, first).receipt], to="ready", error="no luck", counts=True))
    message = claim_one(store, second)
    assert (message.attempts, message.failures, message.last_error, message.value) == (2, 1, "no luck", item("a", "x").value)
    assert settling(store, Settle([message.receipt])).held == [True]
    assert leftovers(store) == []


@pytest.mark.parametrize("way", WAYS)
def test_one_claim_hands_out_fresh_messages_and_others_in_order(store: RedisStore, way: Way) -> None:
    store.execute(Put("jobs", [item("a", 1), item("b", 2)]))
    a, b = store.execute(Claim("jobs", "me", 60.0, 2)).messages
    store.execute(Settle([a.receipt, b.receipt], to="ready"))
    store.execute(Put("jobs", [Item("c", item("c", 3).value, key="k")]))
    store.execute(Put("jobs", [item("d", 4)]))
    claimed = way(store, Claim("jobs", "me", 60.0, 10)).messages
    assert [(one.id, one.attempts, one.key) for one in claimed] == [("a", 2, None), ("b", 2, None), ("c", 1, "k"), ("d", 1, None)]
    assert claimed == store.execute(Browse("jobs", ids=["a", "b", "c", "d"])).messages


@pytest.mark.parametrize("claiming", WAYS)
@pytest.mark.parametrize("settling", WAYS)
def test_an_extended_claim_is_settled_by_any_way(store: RedisStore, claiming: Way, settling: Way) -> None:
    store.execute(Put("jobs", [item("a", 1)]))
    message = claim_one(store, claiming)
    assert store.execute(Extend([message.receipt], 1_000.0)).held == [True]
    assert settling(store, Settle([message.receipt])).held == [True]
    assert leftovers(store) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_fresh_message_that_was_moved_is_claimed_from_where_it_went(store: RedisStore, way: Way) -> None:
    store.execute(Put("jobs", [item("a", 1), item("b", 2)]))
    store.execute(Move("jobs", "ready", ids=["a"]))
    claimed = way(store, Claim("jobs", "me", 60.0, 2)).messages
    assert [one.id for one in claimed] == ["b", "a"]
    assert claimed == store.execute(Browse("jobs", ids=["b", "a"])).messages


@pytest.mark.parametrize("way", WAYS)
def test_holders_are_counted_whatever_way_they_claimed(store: RedisStore, way: Way) -> None:
    store.execute(Put("jobs", [item("a", 1)]))
    claim_one(store, way)
    stats = store.execute(Count("jobs"))
    assert (stats.leased, stats.holders) == (1, {"me": 1})
