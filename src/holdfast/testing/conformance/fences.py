"""Writes that name a token: once a higher one has written, they are refused for good."""

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.commands import BeginImport, Change, Clear, EndImport, Import, LowerFences, Names, Prune, Read, Survey, Together, Write
from holdfast.commands.transaction import Fenced
from holdfast.errors import LeaseLost, Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, acquire, claim_one, grant, put, raw, read, release, token, write
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.randomness import BEYOND

CHANGES: list[dict[str, Any]] = [
    {"do": "put", "value": raw(2)},
    {"do": "delete"},
    {"do": "increment", "by": 1},
    {"do": "compare"},
    {"do": "put", "value": raw(2), "expect": "value", "expected": raw(1)},
]


class FenceConformance(Conformance):
    """A stale holder's write is refused, also after the entry is gone."""

    def test_a_write_under_a_lower_token_is_refused(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        assert write(store, "a", "new", fence=newer).written
        answer = write(store, "a", "stale", fence=stale)
        assert (answer.written, answer.because) == (False, "fence")
        assert read(store) == {"a": "new"}

    def test_the_same_token_may_write_again(self, store: Store) -> None:
        newer = token(store)
        write(store, "a", 1, fence=newer)
        assert write(store, "a", 2, fence=newer).written

    def test_a_plain_write_passes_and_keeps_the_fence(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer)
        assert write(store, "a", 2).written
        assert not write(store, "a", "stale", fence=stale).written

    def test_an_entry_has_the_fence_of_its_key(self, store: Store) -> None:
        fence = token(store)
        write(store, "a", 1, fence=fence)
        write(store, "a", do="delete")
        write(store, "b", 1, fence=fence)
        for key in ("a", "b"):
            written = write(store, key, 2)
            assert written.entry is not None
            assert written.entry.fence == fence
        assert write(store, "a", do="increment", by=1).written
        assert [entry.fence for entry in store.execute(Read(DICT)).entries] == [fence, fence]

    def test_a_fence_holds_for_every_kind_of_change(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer)
        assert not write(store, "a", do="increment", by=1, fence=stale).written
        assert not write(store, "a", do="delete", fence=stale).written
        assert read(store) == {"a": 1}

    def test_a_refused_write_raises_no_fence(self, store: Store) -> None:
        low, middle, high = token(store), token(store), token(store)
        write(store, "a", 1, fence=low)
        assert not write(store, "a", 2, fence=high, expect="absent").written
        assert write(store, "a", 3, fence=middle).written

    def test_a_fence_stays_after_a_delete(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer)
        write(store, "a", do="delete")
        assert not write(store, "a", "stale", fence=stale).written
        assert write(store, "a", "new", fence=newer).written

    def test_a_delete_under_a_fence_is_a_write(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1)
        assert write(store, "a", do="delete", fence=newer).written
        assert not write(store, "a", "stale", fence=stale).written

    def test_a_delete_of_what_is_absent_is_a_write_under_a_fence_too(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        assert write(store, "a", do="delete", fence=newer).written
        assert not write(store, "a", "stale", fence=stale).written, "the newer holder found the key absent, and left it so"

    def test_a_refused_delete_raises_no_fence_beside_one_that_happened(self, store: Store) -> None:
        lower, higher = token(store), token(store)
        store.execute(Write(DICT, [Change("a", value=raw(1)), Change("b", value=raw(1))]))
        changes = [Change("a", do="delete", fence=higher), Change("b", do="delete", fence=higher, expect="absent")]
        assert [answer.written for answer in store.execute(Write(DICT, changes))] == [True, False]
        assert write(store, "b", 2, fence=lower).written

    def test_a_fence_stays_after_a_plain_write_to_a_deleted_key(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer)
        write(store, "a", do="delete")
        write(store, "a", "plain")
        assert not write(store, "a", "stale", fence=stale).written
        assert read(store) == {"a": "plain"}

    @pytest.mark.parametrize("drop", [False, True])
    def test_a_fence_stays_after_clearing_and_dropping(self, store: Store, drop: bool) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer)
        store.execute(Clear("dict", DICT, drop=drop))
        assert not write(store, "a", "stale", fence=stale).written
        assert write(store, "a", "new", fence=newer).written

    def test_a_fence_stays_after_an_entry_ended_by_itself(self, store: Store, clock: FakeClock) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer, ttl_s=1)
        clock.advance(1)
        assert not write(store, "a", "stale", fence=stale).written

    @pytest.mark.parametrize("ending", ["deleted", "cleared", "expired"])
    def test_a_stale_fence_stays_refused_after_everything_was_pruned(self, store: Store, clock: FakeClock, ending: str) -> None:
        stale = token(store)
        newer = token(store)
        write(store, "a", 1, fence=newer, ttl_s=1 if ending == "expired" else None)
        if ending == "deleted":
            write(store, "a", do="delete", fence=newer)
        if ending == "cleared":
            store.execute(Clear("dict", DICT))
        clock.advance(30 * 86_400)
        for _ in range(5):
            store.execute(Prune(keep=0, keep_s=0))
        assert not write(store, "a", "stale", fence=stale).written, "pruning forgot a fence"
        assert write(store, "a", "new", fence=token(store)).written

    def test_fences_of_different_keys_and_dicts_are_apart(self, store: Store) -> None:
        lower, higher = token(store), token(store)
        write(store, "a", 1, fence=higher)
        assert write(store, "b", 1, fence=lower).written
        assert write(store, "a", 1, fence=lower, dict="other").written

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

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_fence_above_every_token_is_refused_and_nothing_is_written(self, store: Store, change: dict[str, Any]) -> None:
        write(store, "a", 1)
        newest = store.execute(Read(DICT)).index
        for fence in (newest + 1, BEYOND):
            with pytest.raises(Refused, match=f"key a of dict '{DICT}': fence {fence} is above {newest}, .* nothing was written: give the"):
                write(store, "a", fence=fence, **change)
            with pytest.raises(Refused, match=f"key new of dict '{DICT}': fence {fence} is above {newest}"):
                store.execute(Write(DICT, [Change("b", value=raw(1)), Change("new", fence=fence, **change)]))
        assert read(store) == {"a": 1}
        assert store.execute(Read(DICT)).index == newest, "something was written"
        for key in ("a", "new"):
            assert write(store, key, 2, fence=token(store)).written, "a holder to come was shut out"

    def test_a_refused_fence_creates_no_dict(self, store: Store) -> None:
        for do in ("put", "delete"):
            with pytest.raises(Refused, match=f"fence {BEYOND} is above"):
                write(store, "a", 1, do=do, fence=BEYOND)
        assert store.execute(Names("dict")).settings == []

    def test_the_newest_token_may_write_however_it_was_given_out(self, store: Store) -> None:
        put(store, "m")
        assert write(store, "a", 1, fence=claim_one(store).token).written
        assert write(store, "a", 2, fence=grant(store).token).written
        entry = write(store, "a", 3).entry
        assert entry is not None
        assert write(store, "a", 4, fence=entry.revision).written

    def test_a_fence_that_came_from_elsewhere_and_is_too_high_hinders_fenced_writes_alone(self, store: Store) -> None:
        write(store, "a", 1)
        import_fences(store, {"a": BEYOND})
        assert write(store, "a", 2, fence=token(store)).because == "fence"
        assert write(store, "a", 3).written
        assert read(store) == {"a": 3}

    def test_a_fence_that_is_too_high_can_be_lowered_and_no_other_is(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        entry = write(store, "a", 1, ttl_s=60).entry
        write(store, "b", 1, fence=newer)
        import_fences(store, {"a": BEYOND, "gone": BEYOND})
        assert [store.execute(LowerFences(DICT, id=name)) for name in ("one", "one", "two")] == [2, 2, 0]
        (found,) = store.execute(Read(DICT, ["a"])).entries
        assert entry is not None
        assert (found.value, found.revision, found.expires_at) == (entry.value, entry.revision, entry.expires_at)
        for key in ("a", "b", "gone"):
            assert write(store, key, "stale", fence=stale).because == "fence", "a stale holder was let in"
            assert write(store, key, 2, fence=token(store)).written, "a holder to come is shut out"

    def test_fences_are_lowered_in_portions_and_in_one_dict_alone(self, store: Store) -> None:
        import_fences(store, dict.fromkeys("abc", BEYOND))
        assert store.execute(LowerFences("other")) == 0
        assert [store.execute(LowerFences(DICT, limit=2)) for _ in range(3)] == [2, 1, 0]
        assert store.execute(Names("dict", "other")).settings == []

    def test_fences_of_a_dropped_dict_are_lowered_beside_other_commands(self, store: Store) -> None:
        write(store, "a", 1)
        import_fences(store, {"a": BEYOND})
        store.execute(Clear("dict", DICT, drop=True))
        step = Together([LowerFences(DICT), Write("other", [Change("k", value=raw(1))])])
        assert store.execute(step)[0] == 1
        assert write(store, "a", 2, fence=token(store)).written

    def test_together_with_others_a_lost_lease_or_fence_refuses_them_all(self, store: Store) -> None:
        stale, newer = token(store), token(store)
        write(store, "a", 1, fence=newer)
        with pytest.raises(Refused):
            store.execute(Write(DICT, [Change("b", value=raw(1)), Change("a", value=raw(2), fence=stale)], all_or_none=True))
        with pytest.raises(LeaseLost):
            store.execute(Write(DICT, [Change("b", value=raw(1)), Change("a", value=raw(2), lease="gone")], all_or_none=True))
        assert read(store) == {"a": 1}


def import_fences(store: Store, fences: Mapping[str, int]) -> None:
    """Let keys have fences that no write could give them: older versions took any, and a copy brings them along."""
    store.execute(BeginImport("old", store.execute(Survey()), merge=True))
    store.execute(Import("old", "", "fences", "", fences=[Fenced(DICT, key, fence) for key, fence in fences.items()]))
    store.execute(EndImport())
