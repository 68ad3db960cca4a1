"""What a key does: at most one living message and one copy buffered behind it."""

import pytest

from holdfast.commands import Put, Puts
from holdfast.commands.putting import IfLeased, IfReady
from holdfast.errors import KeyInFlight
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    JOBS,
    browse,
    claim,
    claim_one,
    drain,
    event_names,
    ids,
    item,
    move,
    put,
    see,
    settle,
    stats,
    value,
)
from holdfast.testing.conformance.factory import Conformance

KEY = '"k"'
LEASED: tuple[IfLeased, ...] = ("keep", "update", "reject", "buffer")
READY: tuple[IfReady, ...] = ("keep", "update", "reject")


def policies() -> list[tuple[IfReady, IfLeased]]:
    return [(if_ready, if_leased) for if_ready in READY for if_leased in LEASED]


class KeyConformance(Conformance):
    """A put on a key that is there follows its policy, and nothing put by default is lost."""

    @pytest.mark.parametrize(("if_ready", "if_leased"), policies())
    def test_a_put_on_a_free_key_adds_a_message(self, store: Store, if_ready: IfReady, if_leased: IfLeased) -> None:
        answer = again(store, if_ready, if_leased)
        assert (answer.ids, answer.created) == (["new"], [True])
        assert contents(store) == [("new", "new")]

    @pytest.mark.parametrize(("if_ready", "if_leased"), policies())
    @pytest.mark.parametrize("state", ["ready", "delayed", "expired"])
    def test_a_put_on_a_waiting_key_follows_if_ready(
        self, store: Store, clock: FakeClock, state: str, if_ready: IfReady, if_leased: IfLeased
    ) -> None:
        put(store, "old", key=KEY, delay_s=60 if state == "delayed" else 0)
        if state == "expired":
            claim(store, lease_s=1)
            clock.advance(1)
        if if_ready == "reject":
            with pytest.raises(KeyInFlight):
                again(store, if_ready, if_leased)
        else:
            answer = again(store, if_ready, if_leased)
            assert (answer.ids, answer.created) == (["old"], [False])
        clock.advance(60)
        assert contents(store) == [("old", "new" if if_ready == "update" else "old")]

    @pytest.mark.parametrize(("if_ready", "if_leased"), policies())
    def test_a_put_on_a_leased_key_follows_if_leased(self, store: Store, if_ready: IfReady, if_leased: IfLeased) -> None:
        put(store, "old", key=KEY)
        held = claim_one(store)
        if if_leased == "reject":
            with pytest.raises(KeyInFlight):
                again(store, if_ready, if_leased)
        else:
            answer = again(store, if_ready, if_leased)
            assert (answer.ids, answer.created) == ((["new"], [True]) if if_leased == "buffer" else (["old"], [False]))
        assert drain(store) == [], "one key never has two leases"
        settle(store, [held], to="ready")
        expected = {"keep": ("old", "old"), "update": ("old", "new"), "reject": ("old", "old"), "buffer": ("new", "new")}
        assert contents(store) == [expected[if_leased]]

    @pytest.mark.parametrize(("if_ready", "if_leased"), policies())
    def test_a_put_on_a_leased_key_with_a_copy_follows_if_leased(self, store: Store, if_ready: IfReady, if_leased: IfLeased) -> None:
        put(store, "old", key=KEY)
        held = claim_one(store)
        put(store, "copy", key=KEY)
        if if_leased == "reject":
            with pytest.raises(KeyInFlight):
                again(store, if_ready, if_leased)
        else:
            answer = again(store, if_ready, if_leased)
            assert (answer.ids, answer.created) == (["copy"], [False])
        settle(store, [held])
        assert contents(store) == [("copy", "new" if if_leased in {"update", "buffer"} else "copy")]

    @pytest.mark.parametrize(("if_ready", "if_leased"), policies())
    def test_a_dead_letters_key_does_not_swallow_new_work(self, store: Store, if_ready: IfReady, if_leased: IfLeased) -> None:
        put(store, "old", key=KEY)
        settle(store, claim(store), to="dead")
        answer = again(store, if_ready, if_leased)
        assert (answer.ids, answer.created) == (["new"], [True])
        assert contents(store) == [("new", "new")]

    def test_nothing_that_was_put_by_default_is_lost(self, store: Store) -> None:
        put(store, "first", key=KEY)
        held = claim(store)
        put(store, "second", key=KEY)
        settle(store, held)
        assert drain(store) == ["second"]

    def test_an_update_keeps_the_position(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", key=KEY)
        clock.advance(1)
        put(store, "b")
        clock.advance(1)
        again(store, "update", "buffer")
        assert contents(store) == [("a", "new"), ("b", "b")]

    def test_an_update_brings_its_metadata(self, store: Store) -> None:
        put(store, "a", key=KEY, metadata=item("m", {"v": 1}).value)
        put(store, "b", key=KEY, metadata=item("m", {"v": 2}).value)
        assert bytes(claim_one(store).metadata or b"") == b'{"v":2}'

    def test_the_holder_keeps_the_value_it_was_given_and_an_ack_removes_the_update(self, store: Store) -> None:
        put(store, "a", key=KEY)
        held = claim(store)
        again(store, "keep", "update")
        assert settle(store, held) == [True]
        assert stats(store).total == 0

    @pytest.mark.parametrize("ending", ["done", "ready", "dead", "expired"])
    def test_a_buffered_copy_becomes_claimable_however_the_first_ends(self, store: Store, clock: FakeClock, ending: str) -> None:
        put(store, "first", key=KEY, max_attempts=5)
        held = claim(store, lease_s=10)
        put(store, "copy", key=KEY)
        assert ids(browse(store, "buffered")) == ["copy"]
        if ending == "expired":
            clock.advance(10)
        else:
            settle(store, held, to=ending)
        assert contents(store) == [("copy", "copy")], "the first gives way to its copy"
        assert stats(store).dead == (1 if ending == "dead" else 0)

    def test_a_copy_keeps_the_place_and_starts_a_fresh_budget(self, store: Store, clock: FakeClock) -> None:
        put(store, "first", key=KEY, max_attempts=9)
        clock.advance(1)
        put(store, "other")
        settle(store, claim(store), to="ready", counts=True, return_to="place")
        held = claim(store)
        clock.advance(1)
        put(store, "copy", key=KEY, max_attempts=2)
        settle(store, held, to="ready")
        found = claim(store, 2)
        assert ids(found) == ["copy", "other"]
        assert (found[0].attempts, found[0].failures, found[0].max_attempts) == (1, 0, 2)

    def test_a_delayed_copy_waits_for_its_moment(self, store: Store, clock: FakeClock) -> None:
        put(store, "first", key=KEY)
        held = claim(store)
        put(store, "copy", key=KEY, delay_s=10)
        settle(store, held)
        assert drain(store) == []
        clock.advance(10)
        assert drain(store) == ["copy"]

    def test_the_copy_behind_a_copy_that_was_claimed_is_a_new_one(self, store: Store) -> None:
        put(store, "first", key=KEY)
        settle(store, claim(store), to="ready")
        for message_id in ("second", "third"):
            held = claim(store)
            put(store, message_id, key=KEY)
            settle(store, held)
        assert drain(store) == ["third"]

    def test_a_copy_behind_what_a_take_removed_is_claimable(self, store: Store, clock: FakeClock) -> None:
        put(store, "first", key=KEY)
        claim(store, lease_s=1, expired_to="front")
        put(store, "copy", key=KEY)
        clock.advance(1)
        assert ids(claim(store, take=True)) == ["copy"]
        assert stats(store).total == 0

    def test_removing_the_first_lets_the_copy_through(self, store: Store, clock: FakeClock) -> None:
        put(store, "first", key=KEY)
        claim(store, lease_s=1)
        put(store, "copy", key=KEY)
        clock.advance(1)
        assert move(store, "gone", ids=["first"]) == ["first"]
        assert drain(store) == ["copy"]

    def test_in_one_batch_each_item_is_put_as_if_alone(self, store: Store) -> None:
        items = [item("a", key=KEY), item("b", key=KEY, if_ready="keep"), item("c", key=KEY), item("d", key='"other"'), item("a")]
        answer = store.execute(Put(JOBS, items))
        assert answer.ids == ["a", "a", "a", "d", "a"]
        assert answer.created == [True, False, False, True, False]
        assert contents(store) == [("a", "c"), ("d", "d")]

    def test_a_rejected_item_refuses_the_whole_batch(self, store: Store) -> None:
        put(store, "old", key=KEY)
        before = event_names(store)
        with pytest.raises(KeyInFlight):
            store.execute(Put(JOBS, [item("a"), item("b", key=KEY, if_ready="reject")]))
        assert contents(store) == [("old", "old")]
        assert before == ["put"]

    def test_keys_are_told_apart_by_their_text(self, store: Store) -> None:
        for number, key in enumerate(["1", "1.0", "true", '"1"', '[1,"a"]']):
            put(store, str(number), key=key)
        assert len(drain(store)) == 5

    def test_a_key_with_the_character_0_is_no_other(self, store: Store) -> None:
        put(store, "a", key='"k\\u0000"')
        put(store, "b", key='"k\\ufffd"')
        assert ids(claim(store, key='"k\\u0000"')) == ["a"]
        assert see(store, "a").key == '"k\\u0000"'

    def test_a_key_of_another_queue_is_another_key(self, store: Store) -> None:
        put(store, "a", key=KEY)
        assert put(store, "b", key=KEY, queue="others").created == [True]

    def test_a_message_can_be_claimed_by_its_key(self, store: Store) -> None:
        put(store, "a", key='"x"')
        put(store, "b", key=KEY)
        held = claim(store, key=KEY)
        assert ids(held) == ["b"]
        assert value(held[0]) == "b"
        assert settle(store, held) == [True]
        assert drain(store) == ["a"]

    def test_a_key_that_is_not_there_or_is_held_gives_nothing(self, store: Store) -> None:
        assert claim(store, key=KEY) == []
        put(store, "a", key=KEY)
        claim(store)
        assert claim(store, key=KEY) == []

    def test_a_delayed_key_gives_nothing_until_it_is_due(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", key=KEY, delay_s=10)
        assert claim(store, key=KEY) == []
        clock.advance(10)
        assert ids(claim(store, key=KEY)) == ["a"]

    def test_an_expired_key_can_be_claimed_and_its_budget_counts(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", key=KEY, max_attempts=2)
        claim(store, lease_s=1, key=KEY)
        clock.advance(1)
        assert claim_one(store, lease_s=1, key=KEY).failures == 1
        clock.advance(1)
        assert claim(store, key=KEY) == []
        assert see(store, "a").state == "dead"

    def test_a_message_can_be_taken_by_its_key(self, store: Store) -> None:
        put(store, "a", key=KEY)
        assert ids(claim(store, key=KEY, take=True)) == ["a"]
        assert stats(store).total == 0

    def test_claiming_by_key_leaves_the_expired_of_other_keys_alone(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", key='"x"')
        put(store, "b", key=KEY)
        claim(store, key='"x"', lease_s=1)
        clock.advance(1)
        assert ids(claim(store, key=KEY)) == ["b"]
        assert drain(store) == ["a"]


def again(store: Store, if_ready: IfReady, if_leased: IfLeased) -> Puts:
    return put(store, "new", key=KEY, if_ready=if_ready, if_leased=if_leased)


def contents(store: Store) -> list[tuple[str, object]]:
    """Ids and values of everything that is due, in order."""
    return [(message.id, value(message)) for message in claim(store, 100, take=True)]
