"""Messages on Redis: the fast paths and the full rules read what the others wrote, in whatever order a message comes by them."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from msgspec import Raw
from msgspec.structs import replace

from holdfast.commands import Browse, Claim, Clear, Command, Count, Extend, Item, Move, Put, Settle, Together
from holdfast.records import Message
from holdfast.stores.redis import RedisStore
from holdfast.testing.conformance.asking import item
from tests.servers import own_redis_url

OnQueues = Put | Claim | Settle
Way = Callable[[RedisStore, OnQueues], Any]


def by_fast_path(store: RedisStore, command: OnQueues) -> Any:
    return store.execute(cast("Command[Any]", command))


def by_full_rules(store: RedisStore, command: OnQueues) -> Any:
    """A step of one command, which has no fast path."""
    return store.execute(Together([command]))[0]


WAYS = (by_fast_path, by_full_rules)


@pytest.fixture
def store() -> Iterator[RedisStore]:
    store = RedisStore(own_redis_url())
    store.execute(Put("jobs", [item("first", "creates the queue")]))
    store.execute(Claim("jobs", take=True))
    yield store
    store.close()


def leftovers(store: RedisStore) -> list[bytes]:
    """The messages, or pieces of them, that are still kept."""
    _, (_, _, key, *_) = store.request(Count("jobs"))
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
@pytest.mark.parametrize("returning", WAYS)
@pytest.mark.parametrize("settling", WAYS)
def test_a_message_that_came_back_is_claimed_with_all_that_became_of_it(
    store: RedisStore, first: Way, second: Way, returning: Way, settling: Way
) -> None:
    store.execute(Put("jobs", [item("a", "x")]))
    returning(store, Settle([claim_one(store, first).receipt], to="ready", error="no luck", counts=True))
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


OPTIONS: list[dict[str, Any]] = [
    {},
    {"delay_s": 5.0},
    {"at": 1},
    {"at": 10**18, "start_within_s": 60.0},
    {"priority": 3, "max_attempts": 2, "dead_letter": "dead"},
    {"start_within_s": 60.0, "metadata": Raw(b'{"a":1}')},
]
MOMENTS = dict.fromkeys(("n", "created_at", "position", "start_by", "since", "until", "token"), 0)


def put_all(store: RedisStore, way: Way, options: list[dict[str, Any]]) -> list[Message]:
    """What is kept of messages put with options, but for moments that differ."""
    way(store, Put("jobs", [Item(str(number), Raw(b"1"), **one) for number, one in enumerate(options)]))
    found = store.execute(Browse("jobs", ids=[str(number) for number in range(len(options))])).messages
    assert all(message.start_by is None or message.start_by > message.position for message in found)
    line = [message.id for message in store.execute(Browse("jobs")).messages]
    store.execute(Clear("queue", "jobs"))
    assert sorted(line) == [message.id for message in found]
    waits = [min(message.position - message.created_at, 10**9) for message in found]
    return [replace(message, **MOMENTS | {"position": wait}) for message, wait in zip(found, waits, strict=True)]


@pytest.mark.parametrize("options", [OPTIONS, *[[one, one] for one in OPTIONS]], ids=["mixed", *map("-".join, OPTIONS)])
def test_messages_are_kept_alike_by_any_way_whatever_their_options(store: RedisStore, options: list[dict[str, Any]]) -> None:
    assert put_all(store, by_fast_path, options) == put_all(store, by_full_rules, options)


@pytest.mark.parametrize("claiming", WAYS)
def test_a_message_that_was_started_in_time_can_no_longer_be_late(store: RedisStore, claiming: Way) -> None:
    store.execute(Put("jobs", [Item("a", Raw(b"1"), start_within_s=60.0), Item("b", Raw(b"2"), start_within_s=0.0)]))
    (message,) = claiming(store, Claim("jobs", "me", 60.0)).messages
    assert message.id == "a"
    _, (_, _, key, *_) = store.request(Count("jobs"))
    assert isinstance(key, str)
    assert store.connections.ask(("ZCARD", key + ":late")) == [0]


@pytest.mark.parametrize("claiming", WAYS)
@pytest.mark.parametrize("return_to", ["back", "place", "front"])
def test_messages_go_back_alike_by_any_way(store: RedisStore, claiming: Way, return_to: Any) -> None:
    found = {}
    for returning in WAYS:
        store.execute(Put("jobs", [item(name) for name in "abc"]))
        claimed = [claim_one(store, claiming) for _ in range(2)]
        settled = Settle([one.receipt for one in reversed(claimed)], "ready", return_to, error="no luck", counts=return_to == "back")
        assert returning(store, settled).held == [True, True]
        line = store.execute(Browse("jobs")).messages
        found[returning] = [replace(message, history=(), **MOMENTS) for message in line]
        assert [message.endings for message in sorted(line, key=lambda one: one.id)] == [1, 1, 0]
        store.execute(Clear("queue", "jobs"))
    assert found[by_fast_path] == found[by_full_rules]


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
