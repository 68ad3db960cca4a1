"""What is refused before anything is sent: the right error, and nothing written."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import (
    Acquire,
    Browse,
    Change,
    Changes,
    Claim,
    Clear,
    Configure,
    Count,
    Extend,
    Import,
    Item,
    LeaseName,
    Length,
    LowerFences,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Renew,
    Seal,
    Settle,
    Together,
    Write,
)
from holdfast.records import Message, Receipt
from holdfast.records.policies import Settings
from holdfast.stores import Store
from holdfast.testing.conformance.asking import JOBS, item, raw
from holdfast.testing.conformance.factory import Conformance

NAN, INF = float("nan"), float("inf")
WRONG: tuple[Any, ...] = (True, 1.0, 1.5, NAN, INF, "1", 10**30)
"""Stored by some stores, refused by others and unreadable in a third, if nobody checked: no whole numbers, or far too large."""
LONG = "x" * 201
HUGE = 2**63 - 1
"""A float in Lua, which no whole number is read from."""
METADATA = (b"[1]", b'{"a":1e400}')

TABLE: list[tuple[str, Callable[[Any], Any], tuple[Any, ...]]] = [
    ("a delay of {}", lambda s: Put(JOBS, [item("a", delay_s=s)]), (NAN, -1.0, INF, 1e300)),
    ("a time to start of {}", lambda s: Put(JOBS, [item("a", start_within_s=s)]), (NAN, -1.0, INF)),
    ("a lease of {}", lambda s: Claim(JOBS, lease_s=s), (NAN, -1.0, INF, 0.0)),
    ("an extension by {}", lambda s: Extend([], s), (NAN, -1.0, INF)),
    ("a snooze of {}", lambda s: Settle([], to="ready", delay_s=s), (NAN, -1.0, INF)),
    ("a lease on a name for {}", lambda s: Acquire(None, "a", "me", "x", s), (NAN, -1.0, INF, 0.0)),
    ("a renewal for {}", lambda s: Renew([], s), (NAN, -1.0, INF, 0.0)),
    ("a time to live of {}", lambda s: Change("a", value=raw(1), ttl_s=s), (NAN, -1.0, INF, 0.0)),
    ("a redrive after {}", lambda s: Move(JOBS, "ready", delay_s=s), (NAN, -1.0, INF)),
    ("a redrive every {}", lambda s: Move(JOBS, "ready", spacing_s=s), (NAN, -1.0, INF)),
    ("events kept for {}", lambda s: Prune(keep_s=s), (NAN, -1.0)),
    ("a queue named {}", lambda n: Put(n, [item("a")]), ("", LONG, "a\x00b", "a\nb", "\ud800")),
    ("a claim from {}", Claim, ("", LONG, "a\x00b")),
    ("a claim by {}", lambda n: Claim(JOBS, n), ("a\x00", "\ud800", LONG)),
    ("a lease held by {}", lambda n: Acquire(None, "a", n, "x", 1.0), ("a\x00", "\ud800", LONG)),
    ("a renewal of lease {}", lambda n: Renew([LeaseName(None, "a", n)], 1.0), (LONG,)),
    ("a write under lease {}", lambda n: Write("d", [Change("a", value=raw(1), lease=n)]), (LONG,)),
    ("a claim on message {}", lambda n: Settle([Receipt(JOBS, n, 1)]), (LONG,)),
    ("a browse of {}", Browse, ("", LONG)),
    ("a count of {}", Count, ("", LONG)),
    ("the length of {}", Length, ("", LONG)),
    ("lowered fences of {}", LowerFences, ("", LONG)),
    ("a move in {}", lambda n: Move(n, "gone"), ("", LONG)),
    ("a move to {}", lambda n: Move(JOBS, "ready", to_queue=n), ("", LONG)),
    ("settings of {}", lambda n: Configure("queue", n), ("", LONG)),
    ("a clearing of {}", lambda n: Clear("dict", n), ("", LONG)),
    ("a dict named {}", lambda n: Write(n, []), ("", LONG, "a\x7f")),
    ("a read of {}", Read, ("", LONG)),
    ("a key {}", lambda k: Change(k, value=raw(1)), ("", "x" * 401, "a\x00")),
    ("a message key {}", lambda k: item("a", key=k), ("", "x" * 401, "a\x00")),
    ("a message id {}", lambda n: item(n, 1), ("", LONG, "a\x00")),
    ("a dead-letter queue {}", lambda n: item("a", dead_letter=n), ("", LONG)),
    ("a claimer's dead-letter queue {}", lambda n: Claim(JOBS, dead_letter=n), ("", LONG)),
    ("a settler's dead-letter queue {}", lambda n: Settle([], dead_letter=n), ("", LONG)),
    ("a lease key {}", lambda k: Acquire(None, k, "me", "x", 1.0), ("", "x" * 401)),
    ("a lease without an id", lambda _: Acquire(None, "a", "me", "", 1.0), ("",)),
    ("metadata that is {}", lambda m: item("a", metadata=Raw(m)), METADATA),
    ("a budget of {}", lambda n: item("a", max_attempts=n), (0, -1, *WRONG)),
    ("a claimer's budget of {}", lambda n: Claim(JOBS, max_attempts=n), (0, -1, True, 1.5)),
    ("a settler's budget of {}", lambda n: Settle([], max_attempts=n), (0, -1, True, 1.5)),
    ("a room of {}", lambda n: Configure("queue", JOBS, maxsize=n), (0, -1, *WRONG)),
    ("a priority of {}", lambda n: item("a", priority=n), (2**31, -(2**31) - 1, None, *WRONG)),
    ("a claim of {}", lambda n: Claim(JOBS, limit=n), (0, -1, None, True, 1.0, NAN)),
    ("an increment by {}", lambda n: Change("a", do="increment", by=n), (True, NAN, INF, "1", 10**30)),
    ("a fence of {}", lambda n: Change("a", value=raw(1), fence=n), (-1, True, 1.5, 10**30)),
    ("a claim of token {}", lambda n: Settle([Receipt(JOBS, "a", n)]), (HUGE,)),
    ("a page behind {}", lambda place: Browse(JOBS, after=place), ((1,), (0, 1, HUGE))),
    ("a copied number {}", lambda n: Import("s", "", "p", "", messages=[Message(JOBS, "a", raw(1), n)]), (HUGE,)),
    ("a copied room {}", lambda n: Import("s", "", "p", "", settings=[Settings("queue", JOBS, maxsize=n)]), (HUGE,)),
    ("a sealing at {}", lambda n: Seal("memory://", n), (HUGE,)),
    ("a pause of {}", lambda n: Configure("queue", JOBS, paused=n), (1, None)),
    ("a taking of {}", lambda n: Claim(JOBS, take=n), (1, None)),
    ("a browse of {}", lambda n: Browse(JOBS, limit=n), (0, -1)),
    ("a read of {}", lambda n: Read("d", limit=n), (0, -1)),
    ("a move of {}", lambda n: Move(JOBS, "gone", limit=n), (0, -1)),
    ("a page of {} events", lambda n: Changes("queue:q", limit=n), (0, -1)),
    ("a step of {} commands", lambda n: Together([Count(JOBS)] * n), (1_001,)),
    ("events of {}", Changes, ("", "queue:" + "x" * 700, "queue:\x00")),
    ("a page of {} names", lambda n: Names("queue", limit=n), (0, -1)),
    ("a pruning of {}", lambda n: Prune(limit=n), (0, -1)),
    ("fewer than no events kept", lambda _: Prune(keep=-1), ("",)),
    ("an unknown if_ready", lambda _: item("a", if_ready="buffer"), ("",)),
    ("an unknown if_leased", lambda _: item("a", if_leased="nonsense"), ("",)),
    ("an unknown if_id", lambda _: item("a", if_id="nonsense"), ("",)),
    ("an unknown if_recent", lambda _: item("a", key='"k"', unique_for_s=1, if_recent="nonsense"), ("",)),
    ("a cap on nothing", lambda _: item("a", key='"k"', at_latest_s=1), ("",)),
    ("a policy for no time", lambda _: item("a", key='"k"', if_recent="reject"), ("",)),
    ("uniqueness of no key", lambda _: item("a", unique_for_s=1), ("",)),
    ("uniqueness for {}", lambda seconds: item("a", key='"k"', unique_for_s=seconds), (0, -1)),
    ("an unknown expired_to", lambda _: Claim(JOBS, expired_to="middle"), ("",)),  # type: ignore[arg-type]
    ("an unknown ending", lambda _: Settle([], to="gone"), ("",)),  # type: ignore[arg-type]
    ("an unknown return_to", lambda _: Settle([], to="ready", return_to="middle"), ("",)),  # type: ignore[arg-type]
    ("an unknown move", lambda _: Move(JOBS, "leased"), ("",)),  # type: ignore[arg-type]
    ("a signal to nobody", lambda _: Move(JOBS, "due"), ("",)),
    ("an unknown state", lambda _: Browse(JOBS, state="gone"), ("",)),  # type: ignore[arg-type]
    ("an unknown change", lambda _: Change("a", do="append", value=raw(1)), ("",)),  # type: ignore[arg-type]
    ("a rate without an interval", lambda _: Change("a", "pace"), ("",)),
    ("more at once than a burst", lambda _: Change("a", "pace", interval_us=1, burst=2, cost=3), ("",)),
    ("a rate with an end", lambda _: Change("a", "pace", interval_us=1, ttl_s=1), ("",)),
    ("an unknown expectation", lambda _: Change("a", value=raw(1), expect="newer"), ("",)),  # type: ignore[arg-type]
    ("an unknown kind", lambda _: Configure("stack", JOBS), ("",)),  # type: ignore[arg-type]
    ("a put without a value", lambda _: Change("a"), ("",)),
    ("a comparison with nothing", lambda _: Change("a", value=raw(1), expect="value"), ("",)),
    ("one key twice", lambda _: Write("d", [Change("a", value=raw(1)), Change("a", do="delete")]), ("",)),
    ("a queue that is its own dead-letter queue", lambda _: Put(JOBS, [item("a", dead_letter=JOBS)]), ("",)),
    ("a burial into another queue", lambda _: Move(JOBS, "dead", to_queue="other"), ("",)),
]

REFUSED = {what.format(repr(value)[:9]): (make, value) for what, make, values in TABLE for value in values}


class BadInputConformance(Conformance):
    """Bad arguments are a ValueError or a TypeError; what is over a store's limits is refused by the store."""

    @pytest.mark.parametrize("what", REFUSED)
    def test_bad_arguments_are_refused_before_anything_is_sent(self, store: Store, what: str) -> None:
        with pytest.raises((ValueError, TypeError)):
            make, value = REFUSED[what]
            store.execute(make(value))
        assert store.execute(Names("queue")).settings == []
        assert store.execute(Names("dict")).settings == []

    def test_a_value_over_the_limit_is_refused_and_the_batch_with_it(self, store: Store) -> None:
        big = Raw(b'"' + b"x" * store.limits.value_bytes + b'"')
        self._refuses(store, Put(JOBS, [item("a"), Item("b", big)]))
        self._refuses(store, Write("d", [Change("a", value=big)]))
        self._refuses(store, Write("d", [Change("a", value=raw(1), expect="value", expected=big)]))
        self._refuses(store, Put(JOBS, [item("a", metadata=Raw(b'{"a":' + bytes(big) + b"}"))]))
        self._refuses(store, Acquire("d", "k", "me", "x", 1.0, big))

    def test_a_value_at_the_limit_is_taken_and_comes_back(self, store: Store) -> None:
        value = Raw(b'"' + b"x" * (store.limits.value_bytes - 2) + b'"')
        store.execute(Put(JOBS, [Item("b", value)]))
        assert bytes(store.execute(Claim(JOBS)).messages[0].value) == bytes(value)

    def test_batches_over_the_limit_are_refused(self, store: Store) -> None:
        many = store.limits.batch_items + 1
        self._refuses(store, Put(JOBS, [item(str(number)) for number in range(many)]))
        self._refuses(store, Claim(JOBS, limit=many))
        self._refuses(store, Write("d", [Change(str(number), value=raw(1)) for number in range(many)]))
        self._refuses(store, Read("d", limit=many))

    def test_steps_about_more_than_a_batch_are_refused(self, store: Store) -> None:
        half = store.limits.batch_items // 2
        names = [str(number) for number in range(half + 1)]
        self._refuses(store, Together([Put(JOBS, [item(name) for name in names]), Put("more", [item(name) for name in names[1:]])]))
        self._refuses(store, Together([Read("d", limit=half), Read("e", limit=half + 1)]))
        self._refuses(store, Together([Count(JOBS)] * 11))

    def test_batches_of_too_many_bytes_are_refused(self, store: Store) -> None:
        value = Raw(b'"' + b"x" * (store.limits.value_bytes - 2) + b'"')
        count = store.limits.batch_bytes // store.limits.value_bytes + 1
        self._refuses(store, Put(JOBS, [Item(str(number), value) for number in range(count)]))

    def _refuses(self, store: Store, command: Any) -> None:
        with pytest.raises(ValueError, match="limit"):
            store.execute(command)
        assert store.execute(Names("queue")).settings == []
        assert store.execute(Names("dict")).settings == []
