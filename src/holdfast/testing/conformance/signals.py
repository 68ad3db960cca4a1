"""What a job that sleeps and reports progress needs: its delay ends on a signal, and failures before progress do not bury it."""

import pytest

from holdfast.commands import Claim, Extend, Move, Put, Together
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, claim_one, event_names, item, move, put, see, settle, stats, value
from holdfast.testing.conformance.factory import Conformance

KEY = '"k"'


class SignalConformance(Conformance):
    """A signal ends the delay of a message and changes nothing else; progress gives a message its whole budget again."""

    def test_a_signal_ends_a_delay_and_keeps_the_failures(self, store: Store) -> None:
        put(store, "a", max_attempts=3)
        settle(store, claim(store), to="ready", counts=True, delay_s=60)
        assert claim(store) == []
        assert move(store, "due", ids=["a", "a", "nobody"]) == ["a"]
        found = claim_one(store)
        assert (found.failures, found.attempts, len(found.history)) == (1, 2, 1)
        assert "moved" in event_names(store)

    @pytest.mark.parametrize("state", ["due", "leased", "dead", "buffered"])
    def test_a_signal_leaves_all_others_as_they_are(self, store: Store, state: str) -> None:
        put(store, "a", key=KEY)
        held = claim(store) if state != "due" else []
        if state == "dead":
            settle(store, held, to="dead")
        if state == "buffered":
            put(store, "copy", key=KEY, delay_s=60)
        before = [see(store, "a"), *([see(store, "copy")] if state == "buffered" else [])]
        assert move(store, "due", ids=["a", "copy"]) == []
        assert [see(store, message.id) for message in before] == before

    def test_a_signal_counts_no_message_twice(self, store: Store) -> None:
        put(store, "a", delay_s=60)
        move(store, "due", ids=["a"])
        assert (stats(store).ready, stats(store).delayed) == (1, 0)

    def test_a_signal_may_stand_beside_a_claim_and_a_put_of_a_key(self, store: Store) -> None:
        put(store, "a", delay_s=60)
        put(store, "b")
        step = Together([Claim(JOBS, "w", 30.0), Move(JOBS, "due", ids=["a"])])
        claimed, moved = store.execute(step)
        assert ([message.id for message in claimed.messages], moved.ids) == (["b"], ["a"])
        put(store, "c", key=KEY, delay_s=60)
        store.execute(Together([Move(JOBS, "due", ids=["c"]), Put(JOBS, [item("d", "new", key=KEY)])]))
        assert [value(message) for message in claim(store, 5)] == ["a", "new"]

    def test_failures_before_progress_do_not_count(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=2)
        for _ in range(5):
            held = claim_one(store, lease_s=5)
            store.execute(Extend([held.receipt], 5.0, progress=True))
            clock.advance(5)
        assert claim_one(store, lease_s=5).failures == 1, "the last one, after its progress"

    def test_without_progress_an_extension_keeps_the_failures(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=2)
        for _ in range(2):
            held = claim_one(store, lease_s=5)
            store.execute(Extend([held.receipt], 5.0))
            clock.advance(5)
        assert (claim(store), see(store, "a").state) == ([], "dead")

    def test_progress_is_nothing_to_who_has_lost_the_claim(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", max_attempts=5)
        held = claim_one(store, lease_s=5)
        clock.advance(5)
        claim_one(store)
        assert store.execute(Extend([held.receipt], 5.0, progress=True)).held == [False]
        assert see(store, "a").failures == 1
