"""Listing leases, and taking one from its holder."""

from typing import Any

import pytest
from msgspec import json

from holdfast.commands import Break, Holding, LeaseName, Leases, Release, Together
from holdfast.commands.topics import lease_topic
from holdfast.records import Lease
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, acquire, event_names, grant, is_seen, last_event, release, renew, write
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import Doing

WHY = "its host is gone"


def listed(store: Store, **asked: Any) -> list[Holding]:
    """All pages."""
    found: list[Holding] = []
    after = None
    while True:
        page = store.execute(Leases(after=after, **asked))
        found += page.held
        after = page.after
        if after is None:
            return found


def broken(store: Store, lease: Lease, **options: Any) -> list[Lease]:
    return store.execute(Break(lease.dict, lease.key, WHY, **options)).leases


class LeaseListConformance(Conformance):
    """Every lease that is held is listed, and the holder of one that was broken has lost it."""

    @pytest.mark.parametrize("of", [None, DICT])
    def test_held_leases_are_listed_by_key(self, store: Store, clock: FakeClock, of: str | None) -> None:
        held = [grant(store, key, lease_id=key, dict=of, lease_s=30) for key in ("b", "a", "c")]
        grant(store, "elsewhere", lease_id="4", dict="another dict")
        grant(store, "ended", lease_id="5", dict=of, lease_s=10)
        assert release(store, held[2])
        clock.advance(10)
        found = listed(store, dict=of)
        assert [one.key for one in found] == ["a", "b"]
        assert [is_seen(one.leases[0], lease) for one, lease in zip(found, [held[1], held[0]], strict=True)] == [True, True]
        assert [(one.capacity, one.used, one.waiting) for one in found] == [(None, None, None)] * 2
        assert store.execute(Leases(of)).now == clock.now_us()

    @pytest.mark.parametrize("of", [None, DICT])
    def test_a_list_is_narrowed_by_prefix_and_read_page_by_page(self, store: Store, of: str | None) -> None:
        for key in ("a", "b/1", "b/2", "b/3", "b/4", "bb", "b/\U0010ffffz"):
            grant(store, key, lease_id=key, dict=of)
        page = store.execute(Leases(of, "b/", limit=2))
        assert ([one.key for one in page.held], page.after) == (["b/1", "b/2"], "b/2")
        assert [one.key for one in listed(store, dict=of, prefix="b/", limit=2)] == ["b/1", "b/2", "b/3", "b/4", "b/\U0010ffffz"]
        assert [one.key for one in listed(store, dict=of, limit=3)] == ["a", "b/1", "b/2", "b/3", "b/4", "b/\U0010ffffz", "bb"]
        assert listed(store, dict=of, prefix="c") == []

    def test_a_name_with_capacity_is_listed_with_its_grants_and_its_line(self, store: Store) -> None:
        for lease_id, lease_s in (("one", 30), ("two", 20)):
            acquire(store, "gpu", lease_id=lease_id, holder=lease_id, capacity=2, lease_s=lease_s)
        for lease_id in ("three", "four", "five"):
            acquire(store, "gpu", lease_id=lease_id, holder=lease_id, capacity=2, in_line_s=10)
        grant(store, "plain")
        gpu, plain = listed(store)
        assert [lease.holder for lease in gpu.leases] == ["two", "one"], "by when they end"
        assert (gpu.key, gpu.capacity, gpu.used, gpu.waiting) == ("gpu", 2, 2, 3)
        assert (plain.key, plain.capacity) == ("plain", None)

    @pytest.mark.parametrize("of", [None, DICT])
    def test_a_broken_lease_is_lost_and_the_next_token_is_higher(self, store: Store, of: str | None) -> None:
        held = grant(store, dict=of)
        (taken,) = broken(store, held)
        assert is_seen(taken, held)
        assert renew(store, held) is None
        assert not release(store, held)
        assert grant(store, lease_id="two", dict=of).token > held.token
        assert renew(store, held) is None, "the new holder's lease is another"

    def test_what_a_broken_holder_writes_under_its_token_is_refused_after_the_next_one_wrote(self, store: Store) -> None:
        held = grant(store)
        assert broken(store, held)
        newer = grant(store, lease_id="two")
        assert write(store, "k", 1, fence=newer.token).written
        assert write(store, "k", 2, fence=held.token).because == "fence"

    def test_the_log_says_who_lost_a_lease_and_why(self, store: Store) -> None:
        held = grant(store, holder="ann")
        broken(store, held)
        assert last_event(store, "lease::lock") == ("broken", {"key": "lock", "holder": "ann", "reason": WHY})
        assert event_names(store, "lease::lock") == ["acquired", "broken"]

    def test_only_the_lease_with_the_token_is_broken(self, store: Store, clock: FakeClock) -> None:
        stale = grant(store, lease_s=10)
        clock.advance(10)
        assert broken(store, stale) == [], "it has ended"
        held = grant(store, lease_id="two", lease_s=60)
        assert broken(store, held, token=stale.token) == []
        assert renew(store, held) is not None
        assert len(broken(store, held, token=held.token)) == 1
        assert broken(store, held) == [], "it is free"
        assert listed(store) == []

    def test_whoever_waits_for_a_lease_is_woken_when_it_is_broken(self, store: Store) -> None:
        held = grant(store)
        with store.mark(lease_topic(None, "lock")) as mark:
            assert broken(store, held)
            Doing(lambda: store.wait(mark, 1_000_000.0)).result("a wait for a lease that was broken")

    def test_one_grant_of_a_name_with_capacity_is_broken_or_all(self, store: Store) -> None:
        grants = [acquire(store, "gpu", lease_id=holder, holder=holder, capacity=3, weight=1).lease for holder in ("a", "b", "c")]
        (taken,) = broken(store, grants[1], token=grants[1].token)
        assert (taken.holder, taken.token) == ("b", grants[1].token)
        assert last_event(store, "lease::gpu") == ("broken", {"key": "gpu", "holder": "b", "weight": 1, "reason": WHY})
        (gpu,) = listed(store)
        assert (sorted(lease.holder for lease in gpu.leases), gpu.used) == (["a", "c"], 2)
        assert renew(store, grants[1]) is None
        assert renew(store, grants[0]) is not None
        assert acquire(store, "gpu", lease_id="d", holder="d", capacity=3).lease.token > grants[2].token
        assert sorted(lease.holder for lease in broken(store, grants[0])) == ["a", "c", "d"]
        assert listed(store) == [], "nothing is left of the name"

    def test_those_in_line_keep_their_places_when_grants_are_broken(self, store: Store) -> None:
        held = acquire(store, "gpu", lease_id="a", holder="a", capacity=1).lease
        for lease_id in ("b", "c"):
            acquire(store, "gpu", lease_id=lease_id, holder=lease_id, capacity=1, in_line_s=10)
        assert len(broken(store, held)) == 1
        assert acquire(store, "gpu", lease_id="c", holder="c", capacity=1, in_line_s=10).lease.lease_id != "c"
        assert acquire(store, "gpu", lease_id="b", holder="b", capacity=1, in_line_s=10).lease.lease_id == "b"

    def test_a_repeated_break_ends_nothing_that_was_granted_since(self, store: Store) -> None:
        held = grant(store)
        command = Break(None, "lock", WHY, id="break once")
        assert is_seen(store.execute(command).leases[0], held)
        newer = grant(store, lease_id="two")
        assert is_seen(store.execute(command).leases[0], held)
        assert renew(store, newer) is not None

    def test_a_step_breaks_a_lease_and_lists_what_was_before(self, store: Store) -> None:
        held, other = grant(store, "a", lease_id="1"), grant(store, "b", lease_id="2")
        found, taken, given = store.execute(Together([Leases(), Break(None, "a", WHY), Release([LeaseName(None, "b", other.lease_id)])]))
        assert [one.key for one in found.held] == ["a", "b"]
        assert (is_seen(taken.leases[0], held), given.held) == (True, [True])
        assert listed(store) == []

    @pytest.mark.parametrize("of", [None, DICT])
    def test_a_list_of_what_is_not_there_is_empty(self, store: Store, of: str | None) -> None:
        found = store.execute(Leases(of))
        assert (found.held, found.after, found.dict) == ([], None, of)
        assert store.execute(Break(of, "k", WHY)).leases == []
        assert json.decode(json.encode(found))["held"] == []
