"""Limits, rates and throttles, of queues and of groups."""

from typing import Any

import pytest

from holdfast.commands import Claim, Groups, Names, Settle
from holdfast.rates import Rate
from holdfast.records.policies import Settings
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, drain, ids, move, put, settle
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure, lane

SECOND = Rate(1, per_s=1.0)


class LimitConformance(Conformance):
    """Never more claims at once than a limit, nor more in a time than a rate; a dead worker takes nothing with it."""

    def test_no_more_messages_of_a_queue_are_claimed_than_its_limit(self, store: Store) -> None:
        put(store, "a", "b", "c", "d")
        configure(store, limit=2)
        held = claim(store, 5)
        assert ids(held) == ["a", "b"]
        assert claim(store) == []
        settle(store, held[:1])
        assert ids(claim(store, 5)) == ["c"]

    @pytest.mark.parametrize("way", ["released", "failed", "dead", "expired", "cancelled"])
    def test_a_place_is_free_again_however_a_claim_ends(self, store: Store, clock: FakeClock, way: str) -> None:
        configure(store, limit=1)
        put(store, "a", "b")
        held = claim_one(store, lease_s=5.0)
        assert claim(store) == []
        match way:
            case "released":
                settle(store, [held], to="ready")
            case "failed":
                settle(store, [held], to="ready", counts=True, delay_s=9.0)
            case "dead":
                settle(store, [held], to="dead")
            case "expired":
                clock.advance(5)
            case _:
                clock.advance(5)
                move(store, "gone", ids=["a"])
        assert len(claim(store, 5)) == 1
        assert settings(store).live == 1

    def test_a_limit_counts_what_is_claimed_when_it_is_set(self, store: Store) -> None:
        put(store, "a", "b", "c")
        held = claim(store, 2)
        configure(store, limit=2)
        assert claim(store) == []
        settle(store, held)
        assert settings(store).live == 0
        assert ids(claim(store)) == ["c"]

    def test_a_limit_that_is_cut_takes_nothing_away(self, store: Store) -> None:
        configure(store, limit=3)
        put(store, "a", "b", "c", "d")
        held = claim(store, 3)
        configure(store, limit=1)
        settle(store, held[:2])
        assert claim(store) == []
        settle(store, held[2:])
        assert ids(claim(store, 5)) == ["d"]

    def test_each_group_has_as_many_claims_as_its_limit(self, store: Store) -> None:
        configure(store, groups="fair", group_limit=2)
        put(store, "a1", "a2", "a3", group="a")
        put(store, "b1", group="b")
        held = claim(store, 10)
        assert ids(held) == ["a1", "b1", "a2"]
        assert lane(store, "a").live == 2
        settle(store, held[:1])
        assert ids(claim(store, 10)) == ["a3"]

    def test_several_groups_get_their_places_back_at_once_and_keep_their_turns(self, store: Store) -> None:
        configure(store, groups="fair", group_limit=1)
        for number in (1, 2):
            for group in ("c", "a", "b"):
                put(store, f"{group}{number}", group=group)
        put(store, "d1", group="d")
        held = claim(store, 3)
        assert ids(held) == ["c1", "a1", "b1"]
        held += claim(store, 3)
        assert claim(store, 3) == []
        settle(store, held)
        assert [one.name for one in store.execute(Groups(JOBS)).lanes] == ["a", "b", "c"]
        assert ids(claim(store, 2)) == ["c2", "a2"]
        assert ids(claim(store, 2)) == ["b2"]

    def test_a_group_can_have_a_limit_of_its_own(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", "a3", group="a")
        held = claim(store, 2)
        configure(store, group="a", limit=1)
        assert claim(store, 10) == []
        settle(store, held)
        assert store.execute(Claim(JOBS, "worker", 30.0, 5)).careful
        assert lane(store, "a").live == 1

    def test_an_ended_lease_frees_the_place_in_its_group(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair", group_limit=1)
        put(store, "a1", "a2", group="a")
        claim_one(store, lease_s=5.0)
        assert claim(store) == []
        clock.advance(5)
        assert ids(claim(store, 5)) == ["a1"]
        assert lane(store, "a").live == 1

    def test_taking_uses_no_place(self, store: Store) -> None:
        configure(store, groups="fair", group_limit=1, limit=1)
        put(store, "a1", "a2", group="a")
        assert drain(store) == ["a1", "a2"]
        assert settings(store).live == 0

    def test_a_queue_hands_out_no_more_than_its_rate(self, store: Store, clock: FakeClock) -> None:
        configure(store, rate=Rate(1, per_s=1.0, burst=2))
        put(store, *"abcde")
        assert ids(claim(store, 5)) == ["a", "b"]
        empty = store.execute(Claim(JOBS))
        assert (empty.messages, empty.due_in_s, empty.careful) == ([], 1.0, True)
        clock.advance(1)
        assert ids(claim(store, 5)) == ["c"]

    def test_each_group_has_a_rate(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair", group_rate=SECOND)
        put(store, "a1", "a2", group="a")
        put(store, "b1", group="b")
        assert ids(claim(store, 5)) == ["a1", "b1"]
        assert store.execute(Claim(JOBS)).due_in_s == 1.0
        clock.advance(1)
        assert ids(claim(store, 5)) == ["a2"]

    def test_a_group_that_its_rate_let_go_is_forgotten(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair", group_rate=SECOND)
        put(store, "a1", group="a")
        settle(store, claim(store))
        assert [one.name for one in store.execute(Groups(JOBS)).lanes] == ["a"]
        clock.advance(1)
        claim(store)
        assert store.execute(Groups(JOBS)).lanes == []

    def test_what_was_not_started_is_given_back_to_the_rate(self, store: Store) -> None:
        configure(store, groups="fair", group_rate=SECOND, rate=SECOND)
        put(store, "a1", group="a")
        held = claim_one(store)
        store.execute(Settle([held.receipt], "ready", "place", unstarted=True))
        assert ids(claim(store)) == ["a1"]

    def test_nothing_is_given_back_behind_a_later_claim(self, store: Store, clock: FakeClock) -> None:
        configure(store, rate=SECOND)
        put(store, "a", "b", "c")
        first = claim_one(store)
        clock.advance(1)
        claim_one(store)
        clock.advance(0.5)
        store.execute(Settle([first.receipt], "ready", "place", unstarted=True))
        assert claim(store) == []

    def test_a_claim_that_a_group_had_no_part_in_does_not_keep_what_it_gave_back(self, store: Store) -> None:
        configure(store, groups="fair")
        configure(store, group="paced", rate=Rate(1, per_s=10.0, burst=2))
        configure(store, group="heavy", weight=3)
        put(store, *(f"h{n}" for n in range(6)), group="heavy")
        put(store, "p1", "p2", "p3", group="paced")
        claim(store, 3)
        held = claim_one(store)
        assert ids(claim(store, 2)) == ["h3", "h4"]
        store.execute(Settle([held.receipt], "ready", "place", unstarted=True))
        assert ids(claim(store, 5)) == ["h5", "p1", "p2"]

    def test_a_throttled_queue_hands_out_nothing_for_a_while(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b")
        configure(store, throttle_s=30.0)
        assert store.execute(Claim(JOBS)).due_in_s == 30.0
        clock.advance(30)
        assert ids(claim(store)) == ["a"]
        configure(store, throttle_s=30.0)
        configure(store, throttle_s=0.0)
        assert ids(claim(store)) == ["b"]

    def test_a_claim_by_key_counts_under_limits_and_rates(self, store: Store) -> None:
        configure(store, groups="fair", group_limit=1)
        put(store, "a1", group="a", key="one")
        put(store, "a2", group="a", key="two")
        assert ids(claim(store, key="two")) == ["a2"]
        assert claim(store, key="one") == []
        assert claim(store) == []

    def test_plain_queues_are_not_careful(self, store: Store) -> None:
        put(store, "a")
        assert not store.execute(Claim(JOBS, "worker", 30.0)).careful
        configure(store, max_attempts=2)
        assert not store.execute(Claim(JOBS)).careful

    @pytest.mark.parametrize("policies", [{"limit": 3}, {"groups": "fair", "group_limit": 2}, {"groups": "strict"}])
    def test_what_is_counted_is_what_is_claimed(self, store: Store, clock: FakeClock, policies: dict[str, Any]) -> None:
        configure(store, **policies)
        for number in range(30):
            put(store, f"m{number}", group=f"g{number % 4}")
        for number in range(20):
            held = claim(store, 3, lease_s=2.0)
            settle(store, held[number % 2 :], to=("done", "ready", "dead")[number % 3])
            clock.advance(0.5)
        leased = browse(store, "leased")
        if "limit" in policies:
            assert settings(store).live == len(leased)
        else:
            live = {one.name: one.live for one in store.execute(Groups(JOBS)).lanes if one.live}
            assert live == {name: sum(m.group == name for m in leased) for name in {m.group or "" for m in leased}}


def settings(store: Store) -> Settings:
    return next(one for one in store.execute(Names("queue")).settings if one.name == JOBS)
