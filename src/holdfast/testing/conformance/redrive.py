"""A redrive of dead letters never takes the place of newer work under the same key."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commands import Claimed, Item, Move, Put
from holdfast.commands.claiming import Claim
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, drain, event_names, ids, move, put, raw, see, settle
from holdfast.testing.conformance.factory import Conformance

KEY = '"k"'
GRAVE = "graves"


def lost(store: Store, clock: FakeClock) -> list[Any]:
    """A claim whose lease has ended."""
    held = claim(store, lease_s=1)
    clock.advance(1)
    return held


ENDINGS: dict[str, Callable[[Store, FakeClock], Any]] = {
    "released": lambda store, _: settle(store, [claim_one(store)], to="ready"),
    "failed": lambda store, _: settle(store, [claim_one(store)], to="ready", counts=True, error="again"),
    "expired": lost,
    "released after its lease was lost": lambda store, clock: settle(store, lost(store, clock), to="ready"),
    "claimed by key and released": lambda store, _: settle(store, [claim_one(store, key=KEY)], to="ready"),
}

REDRIVES: dict[str, dict[str, Any]] = {"of all": {}, "of one": {"ids": ["old"]}, "later": {"delay_s": 5, "spacing_s": 1}}


class RedriveConformance(Conformance):
    """While a message of its key waits or is claimed, a dead letter stays dead, and the answer says so."""

    @pytest.mark.parametrize("redrive", REDRIVES)
    def test_a_dead_letter_whose_key_is_taken_stays_dead_and_the_answer_says_why(self, store: Store, redrive: str) -> None:
        bury_old(store)
        put(store, "new", key=KEY)
        answer = store.execute(Move(JOBS, "ready", **REDRIVES[redrive]))
        assert (answer.ids, answer.kept) == ([], {"old": "key"})
        assert see(store, "old").state == "dead"

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_newer_work_of_the_key_outlives_a_redrive_however_its_claim_ends(self, store: Store, clock: FakeClock, ending: str) -> None:
        bury_old(store)
        put(store, "new", key=KEY)
        move(store, "ready")
        ENDINGS[ending](store, clock)
        clock.advance(60)
        assert drain(store) == ["new"], "newer work was lost to a redriven dead letter"

    def test_a_dead_letter_stays_dead_while_its_key_is_claimed_and_can_be_redriven_afterwards(self, store: Store) -> None:
        bury_old(store)
        put(store, "new", key=KEY)
        held = claim(store)
        put(store, "newest", key=KEY)
        assert move(store, "ready", ids=["old"]) == []
        settle(store, held, to="ready")
        assert drain(store) == ["newest"]
        assert move(store, "ready", ids=["old"]) == ["old"]
        assert drain(store) == ["old"]

    def test_a_redrive_that_moves_nothing_writes_no_event(self, store: Store) -> None:
        bury_old(store)
        put(store, "new", key=KEY)
        before = event_names(store)
        move(store, "ready")
        assert event_names(store) == before

    def test_of_several_dead_letters_of_one_key_the_longest_dead_goes(self, store: Store) -> None:
        bury_old(store)
        put(store, "newer", key=KEY)
        settle(store, claim(store), to="dead")
        put(store, "other")
        settle(store, claim(store), to="dead")
        answer = store.execute(Move(JOBS, "ready"))
        assert (answer.ids, answer.kept) == (["old", "other"], {"newer": "key"})
        assert ids(browse(store, "dead")) == ["newer"]
        assert drain(store) == ["old", "other"]

    def test_a_redrive_into_another_queue_leaves_the_newer_work_of_the_key_there(self, store: Store, clock: FakeClock) -> None:
        put(store, "old", key=KEY, queue=GRAVE)
        put(store, "new", key=KEY)
        answer = store.execute(Move(GRAVE, "ready", state="ready", to_queue=JOBS))
        assert (answer.ids, answer.kept) == ([], {"old": "key"})
        claim(store, lease_s=1)
        clock.advance(1)
        assert (drain(store), drain(store, GRAVE)) == (["new"], ["old"])

    def test_a_redrive_into_another_queue_says_whose_id_is_taken(self, store: Store) -> None:
        put(store, "a", "b", queue=GRAVE)
        put(store, "a")
        answer = store.execute(Move(GRAVE, "ready", state="ready", to_queue=JOBS))
        assert (answer.ids, answer.kept) == (["b"], {"a": "id"})

    def test_a_repeated_redrive_answers_the_same(self, store: Store) -> None:
        bury_old(store)
        put(store, "new", key=KEY)
        once = Move(JOBS, "ready", id="a-redrive")
        first = store.execute(once)
        drain(store)
        assert store.execute(once) == first
        assert see(store, "old").state == "dead"

    def test_a_redriven_message_is_updated_by_a_newer_put(self, store: Store) -> None:
        bury_old(store)
        move(store, "ready")
        store.execute(Put(JOBS, [Item("new", raw("newer"), key=KEY)]))
        assert [(message.id, bytes(message.value)) for message in claim(store, 2)] == [("old", b'"newer"')]

    def test_what_was_taken_and_is_given_back_leaves_newer_work_of_its_key(self, store: Store) -> None:
        put(store, "old", key=KEY)
        taking = Claim(JOBS, take=True)
        taken: Claimed = store.execute(taking)
        put(store, "new", key=KEY)
        for undo in taking.undo(taken):
            store.execute(undo)
        assert [(message.id, bytes(message.value)) for message in claim(store, 2)] == [("new", b'"new"')]


def bury_old(store: Store) -> None:
    put(store, "old", key=KEY)
    settle(store, claim(store), to="dead")
