"""What a claim gives, how long it holds, and that a stale one changes nothing."""

import pytest

from holdfast.commands import Claim, Clear, Extend, Put, Settle
from holdfast.records import NEVER, Receipt
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    JOBS,
    browse,
    claim,
    claim_one,
    drain,
    extend,
    ids,
    item,
    look,
    put,
    see,
    settle,
    stats,
    value,
)
from holdfast.testing.conformance.factory import Conformance

ENDINGS = [{"to": "done"}, {"to": "ready"}, {"to": "dead"}, {"to": "ready", "counts": True, "error": "no"}]


class ClaimConformance(Conformance):
    """A leased message is its holder's alone; with the end of the lease the claim is lost, whoever asks."""

    def test_a_claim_says_who_holds_the_message_and_until_when(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        clock.advance(5)
        (message,) = claim(store, holder="me", lease_s=30)
        assert (message.holder, message.attempts, message.failures) == ("me", 1, 0)
        assert message.since == clock.now_us()
        assert message.until == clock.now_us() + 30_000_000
        assert message.created_at == clock.now_us() - 5_000_000

    def test_a_held_message_is_handed_to_nobody_else(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        claim(store, lease_s=30)
        clock.advance(29.999999)
        assert claim(store, 10) == []

    def test_a_message_whose_lease_has_ended_is_handed_out_again(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        first = claim_one(store, lease_s=30)
        clock.advance(30)
        second = claim_one(store)
        assert second.id == "a"
        assert second.token > first.token, "the token of a later claim must be larger"
        assert second.attempts == 2

    def test_a_message_comes_back_with_its_value_after_an_expiry(self, store: Store, clock: FakeClock) -> None:
        store.execute(Put(JOBS, [item("a", {"n": 1})]))
        claim(store, lease_s=1)
        clock.advance(1)
        assert value(claim_one(store)) == {"n": 1}

    def test_a_claim_whose_lease_has_ended_is_lost_even_if_nobody_took_the_message(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=30)
        clock.advance(30)
        assert extend(store, held) == [False]
        assert settle(store, held) == [False]
        assert drain(store) == ["a"], "the message of a lost claim must come back"

    def test_a_lease_without_an_end_does_not_end(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=None)
        clock.advance(10 * 365 * 86_400)
        assert claim(store) == []
        assert held[0].until == NEVER
        assert settle(store, held) == [True]

    def test_done_removes_the_message_for_good(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        assert settle(store, claim(store)) == [True]
        clock.advance(1_000)
        assert drain(store) == []
        assert look(store, "a") is None

    def test_extending_keeps_a_message_longer(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=10)
        clock.advance(9)
        assert extend(store, held, 10) == [True]
        clock.advance(9)
        assert claim(store) == []
        assert settle(store, held) == [True], "extending must not change the receipt"

    def test_extending_may_also_shorten(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=60)
        extend(store, held, 5)
        clock.advance(5)
        assert drain(store) == ["a"]

    def test_extending_for_ever_takes_the_end_away(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=10)
        extend(store, held, None)
        clock.advance(1_000)
        assert settle(store, held) == [True]

    def test_extending_by_nothing_ends_the_claim_now(self, store: Store) -> None:
        put(store, "a")
        held = claim(store)
        assert extend(store, held, 0) == [True]
        assert settle(store, held) == [False]
        assert drain(store) == ["a"]

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_a_stale_receipt_changes_nothing_of_what_a_newer_holder_has(
        self, store: Store, clock: FakeClock, ending: dict[str, object]
    ) -> None:
        put(store, "a")
        stale = claim(store, lease_s=10)
        clock.advance(10)
        held = claim(store, holder="newer", lease_s=60)
        before = see(store, "a")
        assert settle(store, stale, **ending) == [False]
        assert extend(store, stale, 3_600) == [False]
        assert see(store, "a") == before, "a stale receipt changed a message that somebody else holds"
        assert settle(store, held) == [True]

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_a_settled_receipt_settles_nothing_more(self, store: Store, ending: dict[str, object]) -> None:
        put(store, "a")
        held = claim(store)
        settle(store, held, to="ready")
        before = see(store, "a")
        assert settle(store, held, **ending) == [False]
        assert extend(store, held) == [False]
        assert see(store, "a") == before, "a receipt that was settled before changed the message again"

    def test_a_receipt_with_another_token_holds_nothing(self, store: Store) -> None:
        put(store, "a")
        held = claim_one(store)
        for token in (held.token - 1, held.token + 1, 0):
            assert store.execute(Settle([Receipt(JOBS, "a", token)])).held == [False]
        assert store.execute(Settle([Receipt("elsewhere", "a", held.token)])).held == [False]
        assert store.execute(Settle([Receipt(JOBS, "b", held.token)])).held == [False]
        assert settle(store, [held]) == [True]

    def test_settling_says_for_each_receipt_whether_it_was_held(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b", "c")
        lost = claim(store, lease_s=1)
        held = claim(store, 2, lease_s=60)
        clock.advance(1)
        assert settle(store, [held[0], lost[0], held[1]]) == [True, False, True]
        assert drain(store) == ["a"]

    def test_a_receipt_given_twice_counts_once(self, store: Store) -> None:
        put(store, "a")
        held = claim_one(store)
        assert extend(store, [held, held]) == [True, False]
        assert settle(store, [held, held]) == [True, False]

    def test_receipts_of_several_queues_are_settled_in_one_step(self, store: Store) -> None:
        put(store, "a")
        put(store, "a", queue="others")
        held = [claim_one(store), claim_one(store, queue="others")]
        assert settle(store, held, to="ready") == [True, True]
        assert (drain(store), drain(store, "others")) == (["a"], ["a"])

    def test_tokens_grow_from_claim_to_claim_over_all_queues(self, store: Store) -> None:
        tokens: list[int] = []
        for queue in ("one", "two", "one", "two"):
            put(store, f"m{len(tokens)}", queue=queue)
            tokens.append(claim_one(store, queue=queue).token)
        assert tokens == sorted(set(tokens)), f"tokens must strictly grow, and were {tokens}"

    def test_a_message_put_again_after_it_was_done_gets_a_larger_token(self, store: Store) -> None:
        tokens = []
        for _ in range(3):
            put(store, "a")
            held = claim_one(store)
            tokens.append(held.token)
            settle(store, [held])
        assert tokens == sorted(set(tokens)), f"tokens must strictly grow, and were {tokens}"

    def test_take_removes_what_it_hands_out(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b", "c")
        taken = claim(store, 2, take=True)
        assert ids(taken) == ["a", "b"]
        assert [value(message) for message in taken] == ["a", "b"]
        clock.advance(86_400)
        assert drain(store) == ["c"]
        assert stats(store).total == 0

    def test_what_was_taken_cannot_be_settled(self, store: Store) -> None:
        put(store, "a")
        taken = claim(store, take=True)
        assert settle(store, taken, to="ready") == [False]
        assert drain(store) == []

    def test_a_claim_of_more_than_there_is_takes_what_there_is(self, store: Store) -> None:
        put(store, "a", "b")
        assert ids(claim(store, 10)) == ["a", "b"]

    def test_a_claim_of_a_queue_that_does_not_exist_finds_it_empty(self, store: Store) -> None:
        assert store.execute(Claim("nowhere", lease_s=1)).messages == []
        assert store.execute(Extend([Receipt("nowhere", "a", 1)], 1)).held == [False]

    def test_queues_do_not_see_each_others_messages(self, store: Store) -> None:
        put(store, "a", queue="one")
        put(store, "b", queue="two")
        assert drain(store, "one") == ["a"]
        assert drain(store, "two") == ["b"]

    def test_emptying_a_queue_takes_its_claims_away(self, store: Store) -> None:
        put(store, "a", "b")
        held = claim(store)
        assert store.execute(Clear("queue", JOBS)) == 2
        assert settle(store, held, to="ready") == [False]
        assert drain(store) == []

    def test_dropping_a_queue_takes_everything_of_it_away(self, store: Store) -> None:
        put(store, "a", "b")
        put(store, "other", queue="others")
        held = claim(store)
        assert store.execute(Clear("queue", JOBS, drop=True)) == 2
        assert extend(store, held) == [False]
        assert stats(store).total == 0
        put(store, "a")
        assert claim_one(store).token > held[0].token, "tokens must go on growing over a dropped queue"
        assert drain(store, "others") == ["other"]

    def test_a_held_message_can_be_looked_at(self, store: Store) -> None:
        put(store, "a")
        held = claim(store, holder="me")
        assert browse(store, "leased") == held
