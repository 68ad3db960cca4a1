"""Where a message goes that is released or whose lease ends: the back, its place, or the front."""

import pytest

from holdfast.commands import Claim
from holdfast.records import Message, ReturnTo
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, drain, ids, put, see, settle, stats
from holdfast.testing.conformance.factory import Conformance


class ReturnConformance(Conformance):
    """Release goes to the back, an expiry to its place; anything else on request, and several together keep their order."""

    @pytest.mark.parametrize(
        ("options", "order"),
        [
            ({}, ["c", "d", "a", "b"]),
            ({"return_to": "back"}, ["c", "d", "a", "b"]),
            ({"return_to": "place"}, ["a", "b", "c", "d"]),
            ({"return_to": "front"}, ["a", "b", "c", "d"]),
        ],
    )
    def test_released_messages_go_where_they_were_sent_and_keep_their_order(
        self, store: Store, clock: FakeClock, options: dict[str, object], order: list[str]
    ) -> None:
        put_apart(store, clock, "abcd")
        held = claim(store, 2)
        clock.advance(1)
        settle(store, held, to="ready", **options)
        assert drain(store) == order

    def test_a_message_released_to_the_front_comes_before_older_ones(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "abc")
        held = claim(store, 3)
        settle(store, held[:2], to="ready")
        clock.advance(1)
        settle(store, held[2:], to="ready", return_to="front")
        assert drain(store) == ["c", "a", "b"]

    def test_the_last_sent_to_the_front_is_the_first(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "abc")
        held = claim(store, 2)
        settle(store, held[:1], to="ready", return_to="front")
        settle(store, held[1:], to="ready", return_to="front")
        assert drain(store) == ["b", "a", "c"]

    def test_front_means_before_the_head_of_its_own_priority(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "ab")
        held = claim(store)
        put(store, "urgent", priority=5)
        settle(store, held, to="ready", return_to="front")
        assert drain(store) == ["urgent", "a", "b"]

    def test_a_message_sent_to_the_front_of_an_empty_line_is_due_at_once(self, store: Store) -> None:
        put(store, "a")
        settle(store, claim(store), to="ready", return_to="front")
        assert drain(store) == ["a"]

    def test_a_message_sent_to_the_front_does_not_wait_for_a_delayed_head(self, store: Store) -> None:
        put(store, "a")
        held = claim(store)
        put(store, "later", delay_s=60)
        settle(store, held, to="ready", return_to="front")
        assert drain(store) == ["a"]

    @pytest.mark.parametrize("return_to", ["back", "place", "front"])
    def test_a_released_message_can_be_snoozed(self, store: Store, clock: FakeClock, return_to: ReturnTo) -> None:
        put(store, "a")
        settle(store, claim(store), to="ready", return_to=return_to, delay_s=10)
        clock.advance(9.999999)
        assert drain(store) == []
        clock.advance(0.000001)
        assert drain(store) == ["a"]

    @pytest.mark.parametrize(
        ("expired_to", "order"),
        [("back", ["c", "a", "b", "d"]), ("place", ["a", "b", "c", "d"]), ("front", ["a", "b", "c", "d"])],
    )
    def test_expired_messages_go_where_their_claim_said_and_keep_their_order(
        self, store: Store, clock: FakeClock, expired_to: ReturnTo, order: list[str]
    ) -> None:
        put_apart(store, clock, "abc")
        claim(store, 2, lease_s=10, expired_to=expired_to)
        clock.advance(20)
        put(store, "d")
        assert drain(store) == order

    def test_the_back_for_an_expired_message_is_the_end_of_its_lease(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "ab")
        claim(store, lease_s=10, expired_to="back")
        claim(store, lease_s=5, expired_to="back")
        clock.advance(20)
        assert drain(store) == ["b", "a"]

    def test_an_expired_message_sent_to_the_front_passes_older_ones(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "ab")
        first = claim(store)
        claim(store, lease_s=10, expired_to="front")
        settle(store, first, to="ready", return_to="place")
        clock.advance(10)
        assert drain(store) == ["b", "a"]

    def test_an_expiry_returns_to_its_place_unless_told_otherwise(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "abc")
        claim(store, lease_s=10)
        clock.advance(10)
        assert drain(store) == ["a", "b", "c"]

    def test_where_it_returns_to_was_fixed_by_the_claim_that_took_it(self, store: Store, clock: FakeClock) -> None:
        put_apart(store, clock, "ab")
        claim(store, lease_s=10, expired_to="back")
        clock.advance(10)
        assert ids(claim(store, 2, expired_to="front")) == ["b", "a"]

    @pytest.mark.parametrize("expired_to", ["back", "place", "front"])
    def test_more_than_a_claim_looks_after_all_come_back(self, store: Store, clock: FakeClock, expired_to: ReturnTo) -> None:
        put(store, *numbered(350))
        claim(store, 350, lease_s=10, expired_to=expired_to)
        clock.advance(10)
        back = []
        while messages := claim(store, 10, take=True):
            back += ids(messages)
        assert sorted(back) == numbered(350), "messages were lost, or handed out twice, when many leases had ended"

    def test_when_too_many_ended_for_one_claim_they_return_in_order_of_lease_end(self, store: Store, clock: FakeClock) -> None:
        put(store, *numbered(300))
        for lease_s in (30, 10, 20):
            claim(store, 100, lease_s=lease_s)
        clock.advance(60)
        assert ids(claim(store)) == ["0100"], "the leases that ended first are looked after first"

    def test_many_that_return_to_the_front_come_in_order_of_lease_end(self, store: Store, clock: FakeClock) -> None:
        put(store, *numbered(260))
        claim(store, 230, lease_s=10, expired_to="front")
        clock.advance(10)
        assert [claim_one(store).id for _ in range(8)] == numbered(8), "leases that ended together came back jumbled"
        assert drain(store) == numbered(260)[8:]

    def test_the_first_lease_to_end_is_the_first_at_the_front_however_many_end(self, store: Store, clock: FakeClock) -> None:
        put(store, *numbered(240), "last")
        for lease_s in (30, 20, 10):
            claim(store, 80, lease_s=lease_s, expired_to="front")
        clock.advance(30)
        back = [ids(claim(store, 40, lease_s=None)) for _ in range(7)]
        first, second, third = (numbered(240)[start : start + 80] for start in (160, 80, 0))
        assert [one for page in back for one in page] == [*first, *second, *third, "last"]

    def test_what_returns_to_the_front_of_a_lower_priority_waits_for_the_higher(self, store: Store, clock: FakeClock) -> None:
        put(store, "low", "lower", "urgent")
        claim(store, 2, lease_s=10, expired_to="front")
        put(store, "high", priority=1)
        clock.advance(10)
        assert [claim_one(store).id for _ in range(4)] == ["high", "low", "lower", "urgent"]

    def test_after_many_expiries_the_ready_ones_are_still_there(self, store: Store, clock: FakeClock) -> None:
        put(store, *numbered(300))
        claim(store, 250, lease_s=10)
        clock.advance(10)
        back = []
        while messages := claim(store, 100, take=True):
            back += ids(messages)
        assert sorted(back) == numbered(300)

    def test_when_all_that_ended_were_buried_the_claim_says_to_ask_again(self, store: Store, clock: FakeClock) -> None:
        put(store, *numbered(250), max_attempts=1)
        claim(store, 250, lease_s=10)
        put(store, "last")
        claim(store, lease_s=11)
        clock.advance(11)
        found: list[Message] = []
        asked = 0
        while not found:
            answer = store.execute(Claim(JOBS, lease_s=10))
            found, asked = answer.messages, asked + 1
            assert found or answer.due_in_s == 0, "nothing was handed out though a message is due, and the claim did not say to ask again"
            assert asked <= 4, "claims go on burying and hand out nothing"
        assert ids(found) == ["last"]
        assert stats(store).dead <= 250

    def test_a_release_burns_nothing(self, store: Store) -> None:
        put(store, "a", max_attempts=1)
        for _ in range(5):
            settle(store, claim(store), to="ready")
        assert (see(store, "a").attempts, see(store, "a").failures) == (5, 0)

    def test_a_released_message_belongs_to_nobody(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim_one(store, lease_s=10)
        clock.advance(1)
        settle(store, [held], to="ready")
        clock.advance(60)
        assert see(store, "a").failures == 0, "a lease that was given back must not expire later"
        assert ids(browse(store, "ready")) == ["a"]


def put_apart(store: Store, clock: FakeClock, message_ids: str) -> None:
    """Put messages one second apart."""
    for message_id in message_ids:
        put(store, message_id)
        clock.advance(1)


def numbered(count: int) -> list[str]:
    return [f"{number:04}" for number in range(count)]
