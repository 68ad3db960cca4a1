"""How failures are counted, when a message is dead, and how it comes back."""

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec.metadata import read_metadata
from holdfast.commands import BeginImport, Browse, Claim, EndImport, Import, Settle, Survey
from holdfast.records import Message
from holdfast.records.policies import Settings
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    JOBS,
    browse,
    claim,
    claim_one,
    drain,
    ids,
    item,
    look,
    move,
    put,
    raw,
    see,
    settle,
    stats,
    value,
)
from holdfast.testing.conformance.factory import Conformance

GRAVE = "dead-letters"
UNREADABLE = (b"[1]", b'"\\u0000"', b'{"a":1e400}')


class BudgetConformance(Conformance):
    """A message is dead when its failures, fails and expiries, reach its budget."""

    def test_attempts_count_deliveries_and_failures_what_went_wrong(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        settle(store, claim(store), to="ready")
        fail(store)
        claim(store, lease_s=1)
        clock.advance(1)
        message = claim_one(store)
        assert (message.attempts, message.failures) == (4, 2), "one release, one fail and one expiry before this delivery"

    def test_a_failure_goes_to_the_back_at_once(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        put(store, "b")
        clock.advance(1)
        fail(store)
        assert drain(store) == ["b", "a"]

    def test_a_message_without_a_budget_never_dies(self, store: Store) -> None:
        put(store, "a")
        for _ in range(50):
            fail(store)
        assert see(store, "a").failures == 50
        assert see(store, "a").state == "ready"

    def test_a_message_is_dead_when_its_failures_reach_its_budget(self, store: Store) -> None:
        put(store, "a", max_attempts=3)
        fail(store)
        fail(store)
        assert see(store, "a").state == "ready"
        fail(store)
        assert drain(store) == []
        dead = see(store, "a")
        assert (dead.state, dead.failures, dead.last_error) == ("dead", 3, "broken")

    def test_a_message_that_kills_its_worker_every_time_is_buried_by_the_next_claim(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=2)
        claim(store, lease_s=1)
        clock.advance(1)
        claim(store, lease_s=1)
        clock.advance(1)
        assert claim(store) == [], "its budget is spent"
        assert ids(browse(store, "dead")) == ["a"]

    def test_a_claim_that_buried_all_it_found_says_when_the_next_will_be_due(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=1)
        claim(store, lease_s=1)
        put(store, "later", delay_s=60)
        clock.advance(1)
        assert store.execute(Claim(JOBS)).due_in_s == 59

    def test_the_claimers_budget_holds_for_messages_that_carry_none(self, store: Store, clock: FakeClock) -> None:
        put(store, "bare")
        put(store, "own", max_attempts=9)
        claim(store, 2, lease_s=1)
        clock.advance(1)
        assert ids(claim(store, 2, max_attempts=1, dead_letter=GRAVE)) == ["own"]
        assert drain(store, GRAVE) == ["bare"]

    def test_the_settlers_budget_holds_for_messages_that_carry_none(self, store: Store) -> None:
        put(store, "bare")
        put(store, "own", max_attempts=9)
        settle(store, claim(store, 2), to="ready", counts=True, max_attempts=1, dead_letter=GRAVE)
        assert drain(store) == ["own"]
        assert drain(store, GRAVE) == ["bare"]

    def test_a_claim_can_be_ended_dead(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        clock.advance(5)
        settle(store, claim(store), to="dead", error="no use")
        dead = see(store, "a")
        assert (dead.state, dead.dead_at, dead.last_error) == ("dead", clock.now_us(), "no use")
        assert value(dead) == "a", "a dead letter stays inspectable"

    def test_an_error_is_kept_but_for_what_no_text_of_a_store_can_have(self, store: Store) -> None:
        put(store, "a")
        settle(store, claim(store), to="ready", error="\\u0000 \x00 \ud800 \n €")
        assert see(store, "a").last_error == "\\u0000 \ufffd \ufffd \n €"
        move(store, "dead", ids=["a"], state="ready", error="\x00")
        assert see(store, "a").last_error == "\ufffd"

    def test_the_dead_are_not_handed_out_and_do_not_expire(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=1)
        fail(store)
        clock.advance(1_000_000)
        assert drain(store) == []
        assert stats(store).dead == 1

    def test_with_a_dead_letter_queue_the_payload_moves_there(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=1, dead_letter=GRAVE, metadata=item("m", {"trace": "t1"}).value)
        clock.advance(5)
        fail(store)
        assert look(store, "a") is None
        letter = claim_one(store, queue=GRAVE)
        assert (letter.id, value(letter)) == ("a", "a")
        assert letter.metadata is not None
        metadata = json.decode(letter.metadata)
        assert metadata["trace"] == "t1", "what the sender said must stay"
        assert metadata["dead_letter"] == {
            "queue": JOBS,
            "attempts": 1,
            "failures": 1,
            "error": "broken",
            "at": clock.wall_us() / 1_000_000,
        }

    @pytest.mark.parametrize("metadata", UNREADABLE)
    def test_metadata_that_cannot_be_read_stops_no_claim(self, store: Store, clock: FakeClock, metadata: bytes) -> None:
        """Such metadata is refused now, and a store may hold some of before."""
        poison = Message(JOBS, "bad", raw(1), n=1, position=1, created_at=1, max_attempts=1, dead_letter=GRAVE, metadata=Raw(metadata))
        store.execute(BeginImport("there@5", replace(store.execute(Survey()), latest=5)))
        store.execute(Import("there@5", "", "one", "", settings=[Settings("queue", JOBS, created_at=1)], messages=[poison]))
        store.execute(EndImport())
        claim_one(store, lease_s=1)
        clock.advance(1)
        put(store, "good")
        assert ids(claim(store, 2)) == ["good"]
        letter = store.execute(Browse(GRAVE)).messages[0]
        assert letter.metadata is not None
        assert b'"dead_letter":{' in bytes(letter.metadata)
        assert read_metadata(letter.metadata).keys() <= {"dead_letter", "unreadable"}, "what cannot be read must be shown as text"

    def test_a_dead_letter_is_fresh_work_where_it_goes(self, store: Store) -> None:
        put(store, "a", max_attempts=1, dead_letter=GRAVE)
        fail(store)
        letter = claim_one(store, queue=GRAVE)
        assert (letter.attempts, letter.failures, letter.max_attempts) == (1, 0, None)

    def test_an_expiry_moves_to_the_dead_letter_queue_too(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=1, dead_letter=GRAVE)
        claim(store, lease_s=1)
        clock.advance(1)
        assert claim(store) == []
        assert drain(store, GRAVE) == ["a"]

    def test_a_dead_letter_whose_id_is_taken_where_it_goes_is_not_lost(self, store: Store) -> None:
        put(store, "a", queue=GRAVE)
        put(store, "a", max_attempts=1, dead_letter=GRAVE)
        fail(store)
        letters = drain(store, GRAVE)
        assert len(set(letters)) == 2, f"one message was there and one came, and now there are {letters}"

    def test_dead_letters_of_one_id_from_two_queues_are_both_kept(self, store: Store) -> None:
        for queue in ("one", "two"):
            put(store, "a", queue=queue, dead_letter=GRAVE)
        held = [claim_one(store, queue=queue) for queue in ("one", "two")]
        settle(store, held, to="dead")
        letters = drain(store, GRAVE)
        assert len(set(letters)) == 2, f"two messages were buried in one step, and now there are {letters}"

    def test_redrive_gives_the_same_id_another_chance_at_the_back(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=1)
        first = claim_one(store)
        settle(store, [first], to="ready", counts=True, error="broken")
        put(store, "b")
        clock.advance(1)
        assert move(store, "ready") == ["a"]
        again = claim(store, 2)
        assert ids(again) == ["b", "a"]
        assert (again[1].attempts, again[1].failures, again[1].dead_at) == (2, 0, None)
        assert again[1].token > first.token, "a redriven message must get a larger token"

    def test_a_redriven_message_has_its_whole_budget_again(self, store: Store) -> None:
        put(store, "a", max_attempts=2)
        fail(store)
        fail(store)
        move(store, "ready")
        fail(store)
        assert see(store, "a").state == "ready"
        fail(store)
        assert see(store, "a").state == "dead"

    def test_redrive_may_lead_to_another_queue(self, store: Store) -> None:
        put(store, "a", max_attempts=1, dead_letter=GRAVE)
        fail(store)
        assert move(store, "ready", queue=GRAVE, state="ready", to_queue=JOBS) == ["a"]
        assert (drain(store, GRAVE), drain(store)) == ([], ["a"])

    def test_redrive_into_a_queue_that_has_the_id_leaves_both_where_they_are(self, store: Store) -> None:
        put(store, "a", queue=GRAVE)
        put(store, "a")
        assert move(store, "ready", queue=GRAVE, state="ready", to_queue=JOBS) == []
        assert (drain(store, GRAVE), drain(store)) == (["a"], ["a"])

    def test_redrive_can_be_spread_over_time(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b", "c")
        settle(store, claim(store, 3), to="dead")
        move(store, "ready", delay_s=10, spacing_s=5)
        seen = []
        for _ in range(3):
            clock.advance(5)
            seen.append(drain(store))
        assert seen == [[], ["a"], ["b"]]

    def test_a_message_remembers_how_its_claims_ended(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        clock.advance(5)
        tokens = [fail(store).token]
        settle(store, held := claim(store, holder="second"), to="ready")
        tokens.append(held[0].token)
        tokens.append(claim_one(store, holder="third", lease_s=1).token)
        clock.advance(7)
        message = claim_one(store)
        endings = [(e.holder, e.token, e.how, e.error) for e in message.history]
        assert endings == [
            ("worker", tokens[0], "failed", "broken"),
            ("second", tokens[1], "released", None),
            ("third", tokens[2], "expired", None),
        ]
        assert message.history[2].until - message.history[2].since == 1_000_000, "an expiry ends when the lease did, not when it is found"
        assert message.last_error == "broken"

    def test_only_the_last_twenty_endings_are_kept_and_all_are_counted(self, store: Store) -> None:
        put(store, "a")
        for number in range(25):
            settle(store, claim(store), to="ready", error=f"error {number}")
        message = see(store, "a")
        assert [ending.error for ending in message.history] == [f"error {number}" for number in range(5, 25)]
        assert message.endings == 25

    def test_a_long_error_is_cut(self, store: Store) -> None:
        put(store, "a")
        settle(store, claim(store), to="ready", error="x" * 100_000)
        assert len(see(store, "a").last_error or "") < 10_000

    def test_a_burial_keeps_the_history(self, store: Store) -> None:
        put(store, "a", max_attempts=2)
        fail(store)
        fail(store)
        assert [ending.how for ending in see(store, "a").history] == ["failed", "buried"]

    def test_settling_dead_alone_burns_no_failure(self, store: Store) -> None:
        put(store, "a")
        held = claim_one(store)
        store.execute(Settle([held.receipt], to="dead"))
        assert see(store, "a").failures == 0


def fail(store: Store) -> Message:
    """Claim a message and fail it."""
    held = claim_one(store)
    assert settle(store, [held], to="ready", counts=True, error="broken") == [True]
    return held
