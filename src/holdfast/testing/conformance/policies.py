"""Policies of queues: budgets, leases, back-off, late messages, and the order in which messages are claimed."""

from typing import Any

import pytest

from holdfast.backoff import Backoff
from holdfast.commands import Claim, Configure, Names
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, drain, ids, last_event, look, put, see, settle
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure
from holdfast.testing.conformance.limits import settings


class PolicyConformance(Conformance):
    """What a queue says holds for every producer and worker, unless a message or a claim says otherwise."""

    def test_a_queue_without_policies_has_none(self, store: Store) -> None:
        configure(store, max_attempts=3)
        assert settings(store).policy is not None
        configure(store, max_attempts=None)
        assert settings(store).policy is None

    def test_policies_are_told(self, store: Store) -> None:
        configure(store, max_attempts=3, lease_s=5.0)
        assert last_event(store)[1]["policy"] == {"max_attempts": 3, "lease_s": 5.0}

    def test_a_queue_has_a_budget(self, store: Store) -> None:
        configure(store, max_attempts=2, dead_letter="graves")
        put(store, "a")
        for _ in range(2):
            settle(store, [claim_one(store)], to="ready", counts=True)
        assert look(store, "a") is None
        assert see(store, "a", "graves").state == "ready"

    def test_an_ended_lease_counts_against_the_budget_of_the_queue(self, store: Store, clock: FakeClock) -> None:
        configure(store, max_attempts=1)
        put(store, "a")
        claim_one(store, lease_s=1.0)
        clock.advance(1)
        assert claim(store) == []
        assert see(store, "a").state == "dead"

    @pytest.mark.parametrize("options", [{"put": {"max_attempts": 5}}, {"settle": {"max_attempts": 5}}])
    def test_a_message_or_a_settlement_says_otherwise(self, store: Store, options: dict[str, dict[str, Any]]) -> None:
        configure(store, max_attempts=1)
        put(store, "a", **options.get("put", {}))
        settle(store, [claim_one(store)], to="ready", counts=True, **options.get("settle", {}))
        assert see(store, "a").state == "ready"

    def test_a_claim_has_the_lease_of_the_queue_unless_it_has_its_own(self, store: Store, clock: FakeClock) -> None:
        configure(store, lease_s=20.0)
        put(store, "a", "b", "c")
        claims = [Claim(JOBS, "w"), Claim(JOBS, "w", 60.0, by_policy=True), Claim(JOBS, "w", 60.0)]
        ends = [store.execute(one).messages[0].until - clock.now_us() for one in claims]
        assert ends == [20_000_000, 20_000_000, 60_000_000]

    def test_without_a_policy_a_claim_has_its_own_lease(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = store.execute(Claim(JOBS, "w", 60.0, by_policy=True)).messages[0]
        assert held.until - clock.now_us() == 60_000_000

    def test_failures_wait_as_long_as_the_back_off_says(self, store: Store, clock: FakeClock) -> None:
        configure(store, backoff=Backoff(1.0, most_s=3.0))
        put(store, "a")
        for delay_s in (1, 2, 3, 3):
            settle(store, [claim_one(store)], to="ready", counts=True)
            assert see(store, "a").position == clock.now_us() + delay_s * 1_000_000
            clock.advance(delay_s)

    @pytest.mark.parametrize("options", [{"counts": True, "delay_s": 0.0}, {"counts": False}])
    def test_a_delay_that_is_given_counts_and_a_release_has_none(self, store: Store, options: dict[str, Any]) -> None:
        configure(store, backoff=Backoff(1.0, most_s=3.0))
        put(store, "a")
        settle(store, [claim_one(store)], to="ready", **options)
        assert ids(claim(store)) == ["a"]

    def test_late_messages_are_buried_where_the_queue_says_so(self, store: Store, clock: FakeClock) -> None:
        configure(store, late_to="dead")
        put(store, "a", start_within_s=1.0)
        clock.advance(1)
        assert claim(store) == []
        dead = browse(store, "dead")
        assert (ids(dead), dead[0].history[-1].how, dead[0].failures) == (["a"], "late", 0)

    def test_the_last_comes_first(self, store: Store, clock: FakeClock) -> None:
        configure(store, order="lifo")
        for name in "abc":
            put(store, name)
            clock.advance(1)
        put(store, "urgent", priority=1)
        assert drain(store) == ["urgent", "c", "b", "a"]

    def test_what_goes_back_goes_behind_all_others_where_the_last_comes_first(self, store: Store, clock: FakeClock) -> None:
        configure(store, order="lifo")
        for name in "abc":
            put(store, name)
            clock.advance(1)
        settle(store, [claim_one(store)], to="ready")
        assert drain(store) == ["b", "a", "c"]

    def test_waiting_counts_like_priority(self, store: Store, clock: FakeClock) -> None:
        configure(store, aging_s=10.0)
        put(store, "low")
        clock.advance(15)
        put(store, "high", priority=1)
        put(store, "higher", priority=2)
        assert drain(store) == ["higher", "low", "high"]

    def test_an_order_is_changed_with_what_is_in_line(self, store: Store, clock: FakeClock) -> None:
        for name in "abc":
            put(store, name)
            clock.advance(1)
        configure(store, order="lifo")
        assert ids(claim(store)) == ["c"]
        configure(store, order="fifo")
        assert ids(claim(store)) == ["a"]

    def test_groups_have_an_order_too(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair", order="lifo")
        for name in ("a1", "b1", "a2", "b2"):
            put(store, name, group=name[0])
            clock.advance(1)
        assert ids(claim(store, 4)) == ["a2", "b2", "a1", "b1"]

    def test_a_delayed_message_comes_into_its_order_when_it_is_due(self, store: Store, clock: FakeClock) -> None:
        configure(store, order="lifo")
        put(store, "later", delay_s=5.0)
        put(store, "now")
        assert ids(claim(store, 2)) == ["now"]
        assert store.execute(Claim(JOBS)).due_in_s == 5.0
        clock.advance(5)
        assert ids(claim(store, 2)) == ["later"]

    def test_policies_are_of_one_queue(self, store: Store) -> None:
        configure(store, groups="fair")
        store.execute(Configure("queue", "other"))
        policies = {one.name: one.policy for one in store.execute(Names("queue")).settings}
        assert policies["other"] is None
