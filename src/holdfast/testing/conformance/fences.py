"""Writes that name a token: once a higher one has written, they are refused for good."""

import pytest

from holdfast.commands import Change, Clear, Prune, Write
from holdfast.errors import LeaseLost, Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, acquire, claim_one, grant, put, raw, read, release, write
from holdfast.testing.conformance.factory import Conformance


class FenceConformance(Conformance):
    """A stale holder's write is refused, also after the entry is gone."""

    def test_a_write_under_a_lower_token_is_refused(self, store: Store) -> None:
        assert write(store, "a", "new", fence=20).written
        answer = write(store, "a", "stale", fence=19)
        assert (answer.written, answer.because) == (False, "fence")
        assert read(store) == {"a": "new"}

    def test_the_same_token_may_write_again(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        assert write(store, "a", 2, fence=20).written

    def test_a_plain_write_passes_and_keeps_the_fence(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        assert write(store, "a", 2).written
        assert not write(store, "a", "stale", fence=19).written

    def test_a_fence_holds_for_every_kind_of_change(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        assert not write(store, "a", do="increment", by=1, fence=19).written
        assert not write(store, "a", do="delete", fence=19).written
        assert read(store) == {"a": 1}

    def test_a_refused_write_raises_no_fence(self, store: Store) -> None:
        write(store, "a", 1, fence=10)
        assert not write(store, "a", 2, fence=20, expect="absent").written
        assert write(store, "a", 3, fence=15).written

    def test_a_fence_stays_after_a_delete(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        write(store, "a", do="delete")
        assert not write(store, "a", "stale", fence=19).written
        assert write(store, "a", "new", fence=20).written

    def test_a_delete_under_a_fence_is_a_write(self, store: Store) -> None:
        write(store, "a", 1)
        assert write(store, "a", do="delete", fence=20).written
        assert not write(store, "a", "stale", fence=19).written

    def test_a_delete_of_what_is_absent_is_a_write_under_a_fence_too(self, store: Store) -> None:
        assert write(store, "a", do="delete", fence=20).written
        assert not write(store, "a", "stale", fence=19).written, "the newer holder found the key absent, and left it so"

    def test_a_refused_delete_raises_no_fence_beside_one_that_happened(self, store: Store) -> None:
        store.execute(Write(DICT, [Change("a", value=raw(1)), Change("b", value=raw(1))]))
        changes = [Change("a", do="delete", fence=20), Change("b", do="delete", fence=20, expect="absent")]
        assert [answer.written for answer in store.execute(Write(DICT, changes))] == [True, False]
        assert write(store, "b", 2, fence=10).written

    def test_a_fence_stays_after_a_plain_write_to_a_deleted_key(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        write(store, "a", do="delete")
        write(store, "a", "plain")
        assert not write(store, "a", "stale", fence=19).written
        assert read(store) == {"a": "plain"}

    @pytest.mark.parametrize("drop", [False, True])
    def test_a_fence_stays_after_clearing_and_dropping(self, store: Store, drop: bool) -> None:
        write(store, "a", 1, fence=20)
        store.execute(Clear("dict", DICT, drop=drop))
        assert not write(store, "a", "stale", fence=19).written
        assert write(store, "a", "new", fence=20).written

    def test_a_fence_stays_after_an_entry_ended_by_itself(self, store: Store, clock: FakeClock) -> None:
        write(store, "a", 1, fence=20, ttl_s=1)
        clock.advance(1)
        assert not write(store, "a", "stale", fence=19).written

    @pytest.mark.parametrize("ending", ["deleted", "cleared", "expired"])
    def test_a_stale_fence_stays_refused_after_everything_was_pruned(self, store: Store, clock: FakeClock, ending: str) -> None:
        stale = claim_token(store, "older")
        newer = claim_token(store, "newer")
        write(store, "a", 1, fence=newer, ttl_s=1 if ending == "expired" else None)
        if ending == "deleted":
            write(store, "a", do="delete", fence=newer)
        if ending == "cleared":
            store.execute(Clear("dict", DICT))
        clock.advance(30 * 86_400)
        for _ in range(5):
            store.execute(Prune(keep=0, keep_s=0))
        assert not write(store, "a", "stale", fence=stale).written, "pruning forgot a fence"
        assert write(store, "a", "new", fence=claim_token(store, "newest")).written

    def test_fences_of_different_keys_and_dicts_are_apart(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        assert write(store, "b", 1, fence=5).written
        assert write(store, "a", 1, fence=5, dict="other").written

    def test_the_token_of_a_claim_can_fence_a_write_against_an_earlier_lease(self, store: Store) -> None:
        lease = grant(store)
        put(store, "m")
        held = claim_one(store)
        assert held.token > lease.token
        write(store, "a", "by the claim", fence=held.token)
        assert not write(store, "a", "by the lease", fence=lease.token).written

    def test_a_write_that_names_a_lease_happens_only_while_it_is_held(self, store: Store, clock: FakeClock) -> None:
        lease = grant(store, "a", dict=DICT, lease_id="mine", lease_s=10)
        assert write(store, "a", 1, lease="mine").written
        assert write(store, "a", 2, lease="other").because == "lease"
        clock.advance(10)
        assert write(store, "a", 3, lease="mine").because == "lease"
        assert read(store) == {"a": 1}
        assert lease.dict == DICT

    def test_a_write_that_names_a_lease_of_another_key_is_refused(self, store: Store) -> None:
        acquire(store, "b", dict=DICT, lease_id="mine")
        acquire(store, "a", dict=None, lease_id="mine")
        assert write(store, "a", 1, lease="mine").because == "lease"

    def test_a_write_that_names_a_released_lease_is_refused(self, store: Store) -> None:
        release(store, grant(store, "a", dict=DICT, lease_id="mine"))
        assert write(store, "a", 1, lease="mine").because == "lease"

    def test_a_write_that_names_no_lease_is_a_plain_one(self, store: Store) -> None:
        acquire(store, "a", dict=DICT)
        assert write(store, "a", 1).written

    def test_together_with_others_a_lost_lease_or_fence_refuses_them_all(self, store: Store) -> None:
        write(store, "a", 1, fence=20)
        with pytest.raises(Refused):
            store.execute(Write(DICT, [Change("b", value=raw(1)), Change("a", value=raw(2), fence=19)], all_or_none=True))
        with pytest.raises(LeaseLost):
            store.execute(Write(DICT, [Change("b", value=raw(1)), Change("a", value=raw(2), lease="gone")], all_or_none=True))
        assert read(store) == {"a": 1}


def claim_token(store: Store, message_id: str) -> int:
    """A fresh token: those of claims, leases and revisions come from one counter."""
    put(store, message_id)
    return claim_one(store).token
