"""A command that is sent again under the same id is answered again, not applied again."""

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from holdfast.commands import (
    Acquire,
    Break,
    Change,
    Claim,
    Clear,
    Configure,
    Extend,
    Look,
    Move,
    Prune,
    Put,
    Release,
    Renew,
    Resize,
    Settle,
    Together,
    Write,
)
from holdfast.errors import QueueFull
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    DICT,
    JOBS,
    acquire,
    browse,
    claim,
    claim_one,
    drain,
    event_names,
    grant,
    ids,
    item,
    name,
    put,
    raw,
    read,
    release,
    see,
    settle,
    stats,
    value,
    write,
)
from holdfast.testing.conformance.factory import Conformance


def twice(store: Store, command: Any) -> tuple[Any, Any]:
    return store.execute(command), store.execute(command)


class RetryConformance(Conformance):
    """Applied once, whatever is lost on the way; the answer is rebuilt."""

    def test_a_repeated_put_adds_nothing(self, store: Store) -> None:
        command = Put(JOBS, [item("a"), item("b", key='"k"')], id="c1")
        first = store.execute(command)
        drain(store)
        assert store.execute(command) == first
        assert drain(store) == [], "the message was put, handed out, and came again"

    def test_a_repeated_claim_answers_the_same_messages(self, store: Store) -> None:
        put(store, "a", "b", "c")
        first, again = twice(store, Claim(JOBS, "me", 30.0, 2, id="c1"))
        assert again.messages == first.messages
        assert [value(message) for message in again.messages] == ["a", "b"]
        assert drain(store) == ["c"]

    def test_a_repeated_claim_leaves_out_what_is_no_longer_held(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b")
        command = Claim(JOBS, "me", 30.0, 2, id="c1")
        first = store.execute(command)
        settle(store, first.messages[:1])
        assert ids(store.execute(command).messages) == ["b"]
        clock.advance(30)
        assert store.execute(command).messages == []
        claim(store, lease_s=60)
        assert store.execute(command).messages == [], "somebody else holds it now"

    def test_a_repeated_take_gives_the_values_again(self, store: Store) -> None:
        put(store, "a", "b", metadata=raw({"from": "us"}))
        first, again = twice(store, Claim(JOBS, take=True, id="c1"))
        assert again == first
        assert [value(message) for message in again.messages] == ["a"] == [value(message) for message in first.messages]
        assert drain(store) == ["b"]

    def test_a_repeated_empty_claim_takes_nothing_and_still_says_when_to_ask(self, store: Store) -> None:
        put(store, "later", delay_s=20)
        command = Claim(JOBS, "me", 30.0, id="c1")
        assert store.execute(command).due_in_s == 20
        put(store, "a")
        again = store.execute(command)
        assert again.messages == [], "the first answer said that there was nothing"
        assert again.due_in_s is not None, "a caller that is told of no moment would wait for ever"
        assert drain(store) == ["a"]

    def test_a_repeated_extend_answers_the_same_and_extends_once(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim_one(store, lease_s=10)
        command = Extend([held.receipt], 20.0, id="c1")
        assert store.execute(command).held == [True]
        clock.advance(15)
        assert store.execute(command).held == [True]
        clock.advance(5)
        assert drain(store) == ["a"]

    def test_a_repeated_settle_answers_as_the_first_time(self, store: Store) -> None:
        put(store, "a")
        held = claim_one(store)
        first, again = twice(store, Settle([held.receipt], id="c1"))
        assert first.held == again.held == [True], "a caller whose ack arrived must not be told that its claim was lost"

    def test_a_repeated_failure_counts_once(self, store: Store) -> None:
        put(store, "a", max_attempts=2)
        held = claim_one(store)
        twice(store, Settle([held.receipt], to="ready", counts=True, id="c1"))
        assert see(store, "a").failures == 1

    def test_a_repeated_move_answers_the_same_and_moves_once(self, store: Store) -> None:
        put(store, "a")
        settle(store, claim(store), to="dead")
        command = Move(JOBS, "ready", id="c1")
        assert store.execute(command).ids == ["a"]
        settle(store, claim(store), to="dead")
        assert store.execute(command).ids == ["a"]
        assert ids(browse(store, "dead")) == ["a"]

    def test_a_repeated_write_answers_the_same_and_writes_once(self, store: Store) -> None:
        command = Write(DICT, [Change("n", do="increment", by=1), Change("a", value=raw("x"), expect="absent")], id="c1")
        first, again = twice(store, command)
        assert again == first
        assert read(store) == {"n": 1, "a": "x"}

    def test_a_repeated_write_does_not_undo_a_later_one(self, store: Store) -> None:
        command = Write(DICT, [Change("a", value=raw("first"))], id="c1")
        store.execute(command)
        write(store, "a", "second")
        store.execute(command)
        assert read(store) == {"a": "second"}

    def test_a_repeated_acquire_answers_the_lease_in_force(self, store: Store) -> None:
        command = Acquire(None, "lock", "me", "mine", 30.0, id="c1")
        first, again = twice(store, command)
        assert again.lease == first.lease

    def test_a_repeated_acquire_does_not_take_a_lease_that_was_given_back(self, store: Store) -> None:
        command = Acquire(None, "lock", "me", "mine", 30.0, id="c1")
        release(store, store.execute(command).lease)
        store.execute(command)
        assert acquire(store, "lock", lease_id="two").lease.lease_id == "two", "a late repetition took the lease a second time"

    def test_a_repeated_renewal_answers_the_same_and_renews_once(self, store: Store, clock: FakeClock) -> None:
        lease = grant(store, lease_s=10)
        command = Renew([name(lease)], 20.0, id="c1")
        first = store.execute(command).leases[0]
        assert first is not None
        clock.advance(15)
        again = store.execute(command).leases[0]
        assert again is not None
        assert again.until == first.until

    def test_a_repeated_release_answers_as_the_first_time(self, store: Store) -> None:
        lease = grant(store)
        command = Release([name(lease)], id="c1")
        assert store.execute(command).held == [True]
        grant(store, lease_id="two")
        assert store.execute(command).held == [True]
        assert acquire(store, lease_id="three").lease.is_under("two")

    def test_a_repeated_configure_and_clear_are_applied_once(self, store: Store) -> None:
        store.execute(Configure("queue", JOBS, maxsize=5, id="c1"))
        store.execute(Configure("queue", JOBS, maxsize=None))
        assert store.execute(Configure("queue", JOBS, maxsize=5, id="c1")).maxsize == 5
        put(store, "a")
        assert store.execute(Clear("queue", JOBS, id="c2")) == 1
        put(store, *"abcdefg")
        assert store.execute(Clear("queue", JOBS, id="c2")) == 1
        assert stats(store).ready == 7

    def test_a_repetition_answers_as_the_first_time_whatever_has_changed_since(self, store: Store, clock: FakeClock) -> None:
        put(store, *"abcde")
        gone, kept, _ = (claim_one(store) for _ in range(3))
        lease, lost = grant(store, "one"), grant(store, "two")
        commands: list[Any] = [
            Configure("queue", JOBS),
            Configure("queue", JOBS, maxsize=8),
            Configure("queue", JOBS, maxsize=8),
            Configure("dict", DICT),
            Configure("dict", DICT),
            Put(JOBS, [item("f")]),
            Settle([gone.receipt]),
            Extend([kept.receipt], 60.0),
            Move(JOBS, "dead", ids=["d"]),
            Write(DICT, [Change("k", value=raw(1), expect="absent")]),
            Renew([name(lease)], 90.0),
            Release([name(lease)]),
            Break(None, lost.key, "its host is gone"),
            Resize("gpu", 3),
            Clear("dict", DICT),
        ]
        named = [replace(command, id=f"c{number}") for number, command in enumerate(commands)]
        first = [store.execute(command) for command in named]
        clock.advance(1)
        store.execute(Configure("queue", JOBS, maxsize=None, paused=True))
        store.execute(Configure("dict", DICT))
        store.execute(Resize("gpu", 4))
        put(store, "g")
        write(store, "k", "newer")
        grant(store, "two", lease_id="newer")
        before = [stats(store), read(store), store.execute(Look(None, ["one", "two", "gpu"])).leases]
        assert [store.execute(command) for command in named] == first
        assert [stats(store), read(store), store.execute(Look(None, ["one", "two", "gpu"])).leases] == before

    def test_a_repeated_step_is_applied_once_and_answered_whole(self, store: Store) -> None:
        put(store, "a", "b")
        held = claim_one(store)
        step: list[Any] = [
            Settle([held.receipt]),
            Claim(JOBS, "me", 30.0),
            Write(DICT, [Change("n", do="increment", by=1)]),
            Acquire(None, "l", "me", "x", 9.0),
        ]
        first, again = twice(store, Together(step, id="c1"))
        assert again[0].held == first[0].held
        assert again[1].messages == first[1].messages
        assert again[2] == first[2]
        assert again[3].lease == first[3].lease
        assert read(store) == {"n": 1}

    def test_a_repetition_writes_no_event(self, store: Store) -> None:
        twice(store, Put(JOBS, [item("a")], id="c1"))
        twice(store, Claim(JOBS, "me", 30.0, id="c2"))
        assert event_names(store) == ["put", "claimed"]

    def test_commands_under_different_ids_are_different(self, store: Store) -> None:
        for number in range(3):
            store.execute(Write(DICT, [Change("n", do="increment", by=1)], id=f"c{number}"))
        assert read(store) == {"n": 3}

    def test_commands_without_an_id_are_applied_each_time(self, store: Store) -> None:
        twice(store, Write(DICT, [Change("n", do="increment", by=1)]))
        assert read(store) == {"n": 2}

    def test_a_refused_command_may_be_tried_again_under_its_id(self, store: Store) -> None:
        store.execute(Configure("queue", JOBS, maxsize=1))
        put(store, "a")
        command = Put(JOBS, [item("b")], id="c1")
        try:
            store.execute(command)
        except QueueFull:
            drain(store)
        assert store.execute(command).created == [True]

    def test_an_answer_outlives_two_minutes_of_pruning(self, store: Store, clock: FakeClock) -> None:
        command = Put(JOBS, [item("a")], id="c1")
        store.execute(command)
        drain(store)
        clock.advance(119)
        store.execute(Prune(keep=0, keep_s=0))
        store.execute(command)
        assert drain(store) == [], "the answer was forgotten too early, and the message put twice"

    def test_big_and_odd_answers_come_back_whole(self, store: Store) -> None:
        odd = Raw(b'{"b":1.0,"a":"\\u00e9"}')
        changes = [Change(f"k{number}", value=odd) for number in range(200)]
        first, again = twice(store, Write(DICT, changes, id="c1"))
        assert again == first
