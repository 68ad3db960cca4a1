"""Several commands as one step: all or none of it."""

from typing import Any

import pytest

from holdfast.commands import (
    Acquire,
    Browse,
    Change,
    Claim,
    Clear,
    Configure,
    Count,
    Extend,
    LeaseName,
    LowerFences,
    Move,
    Names,
    Put,
    Read,
    Release,
    Renew,
    Settle,
    Together,
    Write,
)
from holdfast.errors import ClaimLost, HoldfastError, KeyInFlight, LeaseHeld, LeaseLost, QueueFull, Refused
from holdfast.records import Receipt
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    DICT,
    JOBS,
    claim_one,
    drain,
    event_names,
    extend,
    grant,
    ids,
    item,
    look,
    name,
    put,
    raw,
    read,
    renew,
    settle,
    stats,
    token,
    write,
)
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.randomness import BEYOND

KEY = '"k"'


class TogetherConformance(Conformance):
    """Every check sees the state before the step; whatever fails refuses everything."""

    def test_all_of_a_step_happens(self, store: Store) -> None:
        put(store, "a")
        held = claim_one(store)
        answers = store.execute(
            Together([Settle([held.receipt]), Put("next", [item("b")]), Write(DICT, [Change("result", value=raw(42))]), Count(JOBS)])
        )
        assert answers[0].held == [True]
        assert (answers[1].ids, answers[1].created) == (["b"], [True])
        assert answers[2][0].written
        assert (drain(store), drain(store, "next"), read(store)) == ([], ["b"], {"result": 42})

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize(
        ("failing", "error"),
        [
            (Settle([Receipt(JOBS, "a", 1)]), ClaimLost),
            (Extend([Receipt(JOBS, "a", 1)], 30), ClaimLost),
            (Write(DICT, [Change("taken", value=raw(1), expect="absent")]), Refused),
            (Write(DICT, [Change("taken", do="compare", expect="absent")]), Refused),
            (Write(DICT, [Change("taken", value=raw(1), fence=0)]), Refused),
            (Write(DICT, [Change("free", value=raw(1), fence=BEYOND)]), Refused),
            (Write(DICT, [Change("taken", do="increment", by=1)]), Refused),
            (Write(DICT, [Change("x", value=raw(1), lease="not held")]), LeaseLost),
            (Acquire(None, "held", "me", "mine", 30), LeaseHeld),
            (Renew([LeaseName(None, "held", "not mine")], 30), LeaseLost),
            (Release([LeaseName(None, "held", "not mine")]), LeaseLost),
            (Put("bounded", [item("z")]), QueueFull),
            (Put(JOBS, [item("z", key=KEY, if_ready="reject")]), KeyInFlight),
        ],
    )
    def test_whatever_fails_refuses_everything(self, store: Store, failing: Any, error: type[HoldfastError], first: bool) -> None:
        write(store, "taken", "text", fence=token(store))
        grant(store, "held", lease_id="other")
        store.execute(Configure("queue", "bounded", maxsize=1))
        put(store, "a", queue="bounded")
        put(store, "b", key=KEY)
        put(store, "m", queue="others")
        held = claim_one(store, queue="others")
        good: list[Any] = [Settle([held.receipt]), Put("more", [item("n")]), Write("fresh", [Change("b", value=raw(1))])]
        before = everything(store)
        with pytest.raises(error):
            store.execute(Together([failing, *good] if first else [*good, failing]))
        assert everything(store) == before, "a step that was refused left something behind"
        assert extend(store, [held]) == [True]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Put("q", [item("a")]), Put("q", [item("a")])),
            (Put("q", [item("a", key=KEY)]), Put("q", [item("b", key=KEY)])),
            (Put("q", [item("a", key=KEY)]), Claim("q")),
            (Put("q", [item("a")]), Settle([Receipt("q", "a", 1)])),
            (Put("q", [item("a")]), Clear("queue", "q")),
            (Put("q", [item("a")]), Configure("queue", "q")),
            (Put("q", [item("a", key=KEY)]), Move("q", "gone")),
            (Claim("q"), Claim("q")),
            (Claim("q"), Move("q", "gone")),
            (Claim("q"), Move("other", "ready", to_queue="q")),
            (Claim("q"), Clear("queue", "q")),
            (Move("q", "gone"), Move("q", "dead")),
            (Settle([Receipt("q", "a", 1)]), Settle([Receipt("q", "a", 1)])),
            (Settle([Receipt("q", "a", 1)]), Extend([Receipt("q", "a", 1)], 1)),
            (Settle([Receipt("q", "a", 1)]), Clear("queue", "q")),
            (Clear("queue", "q"), Clear("queue", "q")),
            (Configure("queue", "q"), Clear("queue", "q", drop=True)),
            (Write("d", [Change("a", value=raw(1))]), Write("d", [Change("a", do="delete")])),
            (Write("d", [Change("a", value=raw(1))]), Clear("dict", "d")),
            (Write("d", [Change("a", value=raw(1))]), LowerFences("d")),
            (Write("d", [Change("a", value=raw(1))]), Configure("dict", "d")),
            (Write("d", [Change("a", value=raw(1))]), Acquire("d", "a", "me", "x", 1, default=raw(1))),
            (Write("d", [Change("a", value=raw(1), lease="x")]), Release([LeaseName("d", "a", "x")])),
            (Acquire("d", "a", "me", "x", 1), Acquire("d", "a", "me", "y", 1)),
            (Acquire("d", "a", "me", "x", 1), Renew([LeaseName("d", "a", "x")], 1)),
            (Acquire("d", "a", "me", "x", 1), Clear("dict", "d", drop=True)),
            (Renew([LeaseName(None, "a", "x")], 1), Release([LeaseName(None, "a", "x")])),
        ],
    )
    def test_two_commands_on_one_thing_are_refused_before_anything_is_sent(self, store: Store, one: Any, other: Any) -> None:
        for pair in ([one, other], [other, one]):
            with pytest.raises(ValueError, match="two commands of one step"):
                store.execute(Together(pair))
        assert store.execute(Names("queue")).settings == []

    @pytest.mark.parametrize("settle_first", [True, False])
    def test_an_ack_and_a_put_of_the_same_key_leave_the_new_message(self, store: Store, settle_first: bool) -> None:
        put(store, "old", key=KEY)
        held = claim_one(store)
        step: list[Any] = [Settle([held.receipt]), Put(JOBS, [item("new", key=KEY)])]
        store.execute(Together(step if settle_first else step[::-1]))
        assert drain(store) == ["new"]
        assert stats(store).total == 0

    @pytest.mark.parametrize("settle_first", [True, False])
    def test_an_ack_and_an_update_of_the_same_key_leave_nothing(self, store: Store, settle_first: bool) -> None:
        put(store, "old", key=KEY)
        held = claim_one(store)
        step: list[Any] = [Settle([held.receipt]), Put(JOBS, [item("new", key=KEY, if_leased="update")])]
        store.execute(Together(step if settle_first else step[::-1]))
        assert stats(store).total == 0, "an ack removes the update with the rest"

    def test_settling_and_claiming_the_next_is_one_step(self, store: Store) -> None:
        put(store, "a", "b")
        held = claim_one(store)
        settled, claimed = store.execute(Together([Settle([held.receipt]), Claim(JOBS, "me", 30.0)]))
        assert settled.held == [True]
        assert ids(claimed.messages) == ["b"]
        assert settle(store, claimed.messages) == [True]

    def test_what_a_step_releases_is_not_claimed_by_the_same_step(self, store: Store) -> None:
        put(store, "a")
        held = claim_one(store)
        _, claimed = store.execute(Together([Settle([held.receipt], to="ready"), Claim(JOBS, "me", 30.0)]))
        assert claimed.messages == [], "every check sees the state before the step"
        assert drain(store) == ["a"]

    def test_a_step_may_only_compare(self, store: Store) -> None:
        write(store, "a", 1)
        put(store, "m")
        held = claim_one(store)
        step: list[Any] = [Write(DICT, [Change("a", do="compare", expect="value", expected=raw(1))]), Settle([held.receipt])]
        store.execute(Together(step))
        assert look(store, "m") is None
        assert event_names(store, f"dict:{DICT}") == ["written"]

    def test_puts_to_several_queues_are_all_or_none(self, store: Store) -> None:
        store.execute(Configure("queue", "c", maxsize=1))
        fan_out = Together([Put(queue, [item("m")]) for queue in "abc"])
        store.execute(fan_out)
        assert [drain(store, queue) for queue in "ab"] == [["m"], ["m"]]
        with pytest.raises(QueueFull):
            store.execute(Together([Put(queue, [item("n")]) for queue in "abc"]))
        assert [drain(store, queue) for queue in "abc"] == [[], [], ["m"]]

    def test_puts_of_one_step_share_the_room_of_a_queue(self, store: Store) -> None:
        store.execute(Configure("queue", JOBS, maxsize=2))
        with pytest.raises(QueueFull):
            store.execute(Together([Put(JOBS, [item("a"), item("b")]), Put(JOBS, [item("c")])]))
        assert stats(store).total == 0
        store.execute(Together([Put(JOBS, [item("a")]), Put(JOBS, [item("b")])]))
        assert drain(store) == ["a", "b"]

    def test_room_that_a_refused_step_wanted_is_free_again(self, store: Store) -> None:
        store.execute(Configure("queue", JOBS, maxsize=1))
        with pytest.raises(ClaimLost):
            store.execute(Together([Put(JOBS, [item("a")]), Settle([Receipt("q", "x", 1)])]))
        put(store, "a")

    def test_a_lease_taken_in_a_step_is_held_after_it(self, store: Store) -> None:
        answer, _ = store.execute(Together([Acquire(None, "lock", "me", "mine", 30.0), Put(JOBS, [item("a")])]))
        assert answer.lease.lease_id == "mine"
        assert renew(store, answer.lease) is not None

    def test_a_lease_given_back_in_a_step_is_free_after_it(self, store: Store) -> None:
        lease = grant(store)
        store.execute(Together([Release([name(lease)]), Write(DICT, [Change("a", value=raw(1))])]))
        grant(store, lease_id="two")

    def test_tokens_of_one_step_are_still_apart_and_grow(self, store: Store) -> None:
        put(store, "a", queue="one")
        put(store, "a", queue="two")
        one, two, lease = store.execute(Together([Claim("one"), Claim("two"), Acquire(None, "lock", "me", "mine", 30.0)]))
        assert one.messages[0].token < two.messages[0].token < lease.lease.token

    def test_a_step_of_nothing_does_nothing(self, store: Store) -> None:
        assert store.execute(Together([])) == []

    def test_what_a_step_reads_is_the_state_before_it(self, store: Store, clock: FakeClock) -> None:
        write(store, "a", 1)
        entries, _ = store.execute(Together([Read(DICT, limit=10), Put(JOBS, [item("a")])]))
        assert [entry.key for entry in entries.entries] == ["a"]
        counted, browsed, _ = store.execute(Together([Count(JOBS), Browse(JOBS), Put(JOBS, [item("b")])]))
        assert (counted.ready, ids(browsed.messages)) == (1, ["a"])

    @pytest.mark.parametrize("write_first", [True, False])
    def test_a_lease_taken_in_a_step_tells_of_the_entry_before_it(self, store: Store, write_first: bool) -> None:
        write(store, "a", 1)
        for key, before in (("a", b"1"), ("b", None)):
            acquire, change = Acquire(DICT, key, "me", "mine", 60), Write(DICT, [Change(key, value=raw(2))])
            answers = store.execute(Together([change, acquire] if write_first else [acquire, change]))
            entry = answers[1 if write_first else 0].entry
            assert (None if entry is None else bytes(entry.value)) == before


def everything(store: Store) -> list[object]:
    """All that a refused step could have changed."""
    queues = [settings.name for settings in store.execute(Names("queue")).settings]
    states = [store.execute(Browse(queue, state=state)).messages for queue in queues for state in ("ready", "leased", "dead", "buffered")]
    entries = [store.execute(Read(dict)).entries for dict in (DICT, "fresh")]  # noqa: A001 - our word for it
    logs = [event_names(store, topic) for topic in (f"queue:{JOBS}", "queue:bounded", "queue:others", "queue:more", f"dict:{DICT}")]
    return [queues, states, entries, logs, store.execute(Names("dict")).settings]
