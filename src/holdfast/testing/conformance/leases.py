"""Leases on names and on the keys of dicts: who holds one, until when, under which token."""

from typing import Any

import pytest

from holdfast.commands import Acquire, Clear, LeaseName, Look, Names, Release, Renew
from holdfast.errors import LeaseLost
from holdfast.records import NEVER
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    DICT,
    acquire,
    claim_one,
    event_names,
    grant,
    is_seen,
    name,
    put,
    raw,
    read,
    release,
    renew,
    write,
)
from holdfast.testing.conformance.factory import Conformance


class LeaseConformance(Conformance):
    """A lease is its asker's exactly when it carries the id that was asked for."""

    @pytest.mark.parametrize("of", [None, DICT])
    def test_a_free_lease_is_granted(self, store: Store, clock: FakeClock, of: str | None) -> None:
        answer = acquire(store, dict=of, lease_s=30)
        lease = answer.lease
        assert (lease.lease_id, lease.holder, lease.dict, lease.key) == ("one", "me", of, "lock")
        assert (lease.since, lease.until) == (clock.now_us(), clock.now_us() + 30_000_000)
        assert answer.ends_in_s == 30

    def test_a_held_lease_is_not_granted_and_the_answer_says_who_holds_it(self, store: Store, clock: FakeClock) -> None:
        held = grant(store, lease_s=30)
        clock.advance(10)
        answer = acquire(store, lease_id="two", holder="you")
        assert is_seen(answer.lease, held)
        assert answer.ends_in_s == 20

    def test_a_holder_does_not_get_its_lease_twice_by_its_name(self, store: Store) -> None:
        grant(store, lease_id="one", holder="shared name")
        assert acquire(store, lease_id="two", holder="shared name").lease.is_under("one")

    def test_asking_again_under_the_same_id_answers_the_same_lease(self, store: Store, clock: FakeClock) -> None:
        first = grant(store, lease_s=30)
        clock.advance(10)
        again = acquire(store, lease_s=30)
        assert again.lease == first, "asking again neither renews nor grants anew"
        assert again.ends_in_s == 20

    def test_a_lease_can_be_taken_when_it_has_ended(self, store: Store, clock: FakeClock) -> None:
        first = grant(store, lease_s=30)
        clock.advance(29.999999)
        assert is_seen(acquire(store, lease_id="two").lease, first)
        clock.advance(0.000001)
        second = grant(store, lease_id="two")
        assert second.token > first.token

    def test_a_lease_can_be_taken_when_it_was_given_back(self, store: Store) -> None:
        first = grant(store)
        assert release(store, first)
        assert grant(store, lease_id="two").token > first.token

    def test_renewing_keeps_the_lease_and_its_token(self, store: Store, clock: FakeClock) -> None:
        first = grant(store, lease_s=10)
        clock.advance(9)
        renewed = renew(store, first, 10)
        assert renewed is not None
        assert renewed.token == first.token
        assert renewed.until == clock.now_us() + 10_000_000
        clock.advance(9)
        assert acquire(store, lease_id="two").lease.is_under("one")

    def test_a_lease_that_has_ended_can_neither_be_renewed_nor_given_back(self, store: Store, clock: FakeClock) -> None:
        lease = grant(store, lease_s=10)
        clock.advance(10)
        assert renew(store, lease) is None
        assert not release(store, lease)

    def test_a_stale_holder_cannot_touch_the_lease_of_a_newer_one(self, store: Store, clock: FakeClock) -> None:
        stale = grant(store, lease_s=10)
        clock.advance(10)
        newer = grant(store, lease_id="two", lease_s=60)
        assert renew(store, stale) is None
        assert not release(store, stale)
        assert is_seen(acquire(store, lease_id="three").lease, newer)

    def test_a_lease_on_a_name_without_an_end_does_not_end(self, store: Store, clock: FakeClock) -> None:
        answer = acquire(store, lease_s=None)
        assert (answer.lease.until, answer.ends_in_s) == (NEVER, None)
        clock.advance(10 * 365 * 86_400)
        assert acquire(store, lease_id="two").lease.is_under("one")
        assert release(store, answer.lease)

    @pytest.mark.parametrize("of", [None, DICT])
    def test_looking_shows_who_holds_a_lease_and_takes_nothing(self, store: Store, clock: FakeClock, of: str | None) -> None:
        held = grant(store, "held", lease_id="1", dict=of, lease_s=30)
        grant(store, "ended", lease_id="2", dict=of, lease_s=10)
        clock.advance(10)
        looked = store.execute(Look(of, ["free", "held", "ended"])).leases
        assert [None if one is None else (is_seen(one.lease, held), one.ends_in_s) for one in looked] == [None, (True, 20.0), None]
        assert acquire(store, "free", lease_id="3", dict=of).lease.lease_id == "3"

    def test_looking_tells_the_newest_event(self, store: Store) -> None:
        held = grant(store)
        assert store.execute(Look(None, ["lock"])).index == held.token

    def test_leases_of_different_names_and_dicts_are_apart(self, store: Store) -> None:
        grant(store, "a", lease_id="1")
        grant(store, "b", lease_id="2")
        grant(store, "a", lease_id="3", dict="x")
        grant(store, "a", lease_id="4", dict="y")

    def test_several_leases_are_renewed_and_given_back_in_one_step(self, store: Store, clock: FakeClock) -> None:
        held = [grant(store, key, lease_id=key, lease_s=10) for key in "abc"]
        lost = LeaseName(None, "b", "another id")
        renewed = store.execute(Renew([name(held[0]), lost, name(held[2])], 60)).leases
        assert [lease is not None for lease in renewed] == [True, False, True]
        clock.advance(30)
        assert store.execute(Release([name(lease) for lease in held])).held == [True, False, True]

    def test_all_or_none_changes_nothing_when_one_is_lost(self, store: Store, clock: FakeClock) -> None:
        held = grant(store, lease_s=10)
        with pytest.raises(LeaseLost):
            store.execute(Renew([name(held), LeaseName(None, "gone", "x")], 60, all_or_none=True))
        with pytest.raises(LeaseLost):
            store.execute(Release([name(held), LeaseName(None, "gone", "x")], all_or_none=True))
        clock.advance(9)
        assert renew(store, held) is not None
        assert acquire(store, lease_id="two").lease.until == clock.now_us() + 30_000_000

    def test_tokens_only_grow_whatever_they_are_for(self, store: Store) -> None:
        tokens = []
        for number in range(3):
            lease = grant(store, lease_id=str(number))
            put(store, f"m{number}")
            held = claim_one(store)
            entry = write(store, "a", number).entry
            assert entry is not None
            tokens += [lease.token, held.token, entry.revision]
            release(store, lease)
        assert tokens == sorted(set(tokens)), f"tokens must strictly grow, and were {tokens}"

    def test_the_value_under_the_key_comes_with_the_lease(self, store: Store) -> None:
        write(store, "a", "value")
        answer = acquire(store, "a", dict=DICT)
        assert answer.entry is not None
        assert bytes(answer.entry.value) == b'"value"'
        assert acquire(store, "b", dict=DICT).entry is None

    def test_a_default_is_stored_where_the_key_is_absent(self, store: Store) -> None:
        answer = acquire(store, "a", dict=DICT, default=raw("default"))
        assert answer.entry is not None
        assert bytes(answer.entry.value) == b'"default"'
        assert read(store) == {"a": "default"}

    def test_a_default_does_not_replace_a_value(self, store: Store) -> None:
        write(store, "a", "value")
        answer = acquire(store, "a", dict=DICT, default=raw("default"))
        assert answer.entry is not None
        assert bytes(answer.entry.value) == b'"value"'
        assert read(store) == {"a": "value"}

    def test_a_default_is_not_stored_by_who_was_not_granted_the_lease(self, store: Store) -> None:
        acquire(store, "a", dict=DICT)
        acquire(store, "a", dict=DICT, lease_id="two", default=raw("default"))
        assert read(store) == {}

    def test_taking_back_a_lease_takes_back_the_default_it_stored(self, store: Store) -> None:
        take_back(store, default=raw("default"))
        assert read(store) == {}
        assert acquire(store, "a", dict=DICT, lease_id="two").lease.lease_id == "two"

    def test_taking_back_a_lease_leaves_the_value_that_was_there(self, store: Store) -> None:
        write(store, "a", "default")
        take_back(store, default=raw("default"))
        assert read(store) == {"a": "default"}
        assert acquire(store, "a", dict=DICT, lease_id="two").lease.lease_id == "two"

    def test_taking_back_a_lease_leaves_what_was_written_since_it_was_granted(self, store: Store) -> None:
        command = Acquire(DICT, "a", "me", "one", 30.0, raw("default"))
        answer = store.execute(command)
        write(store, "a", "default")
        for undo in command.undo(answer):
            store.execute(undo)
        assert read(store) == {"a": "default"}
        assert acquire(store, "a", dict=DICT, lease_id="two").lease.lease_id == "two"

    def test_deleting_the_key_and_clearing_the_dict_leave_the_lease(self, store: Store) -> None:
        write(store, "a", 1)
        lease = grant(store, "a", dict=DICT)
        write(store, "a", do="delete")
        store.execute(Clear("dict", DICT))
        assert renew(store, lease) is not None

    def test_dropping_the_dict_ends_its_leases(self, store: Store) -> None:
        lease = grant(store, "a", dict=DICT)
        other = grant(store, "a", dict="other")
        store.execute(Clear("dict", DICT, drop=True))
        assert renew(store, lease) is None
        assert renew(store, other) is not None
        assert grant(store, "a", dict=DICT, lease_id="two").token > lease.token

    def test_renewals_are_no_events(self, store: Store) -> None:
        lease = grant(store)
        renew(store, lease)
        assert event_names(store, "lease::lock") == ["acquired"]

    def test_a_lease_on_a_name_creates_no_dict(self, store: Store) -> None:
        grant(store)
        assert store.execute(Names("dict")).settings == []


def take_back(store: Store, **options: Any) -> None:
    """Acquire the lease of a key as a caller does who is cancelled before the answer comes; what that caller got is taken back."""
    command = Acquire(DICT, "a", "me", "one", 30.0, **options)
    for undo in command.undo(store.execute(command)):
        store.execute(undo)
