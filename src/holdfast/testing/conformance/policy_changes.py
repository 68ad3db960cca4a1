"""Policies that change while messages are in line or claimed, and several of them at once."""

from msgspec import json

from holdfast.commands import Changes, Claim, Configure, Groups
from holdfast.commands.topics import queue_topic
from holdfast.rates import Rate
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, claim_one, drain, ids, look, put, settle
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure
from holdfast.testing.conformance.limits import settings


class PolicyChangeConformance(Conformance):
    """What was claimed under one policy ends under another, and every store answers alike."""

    def test_a_queue_that_is_there_is_given_policies(self, store: Store) -> None:
        put(store, "a")
        changed = store.execute(Configure("queue", JOBS, paused=False, max_attempts=3, groups="fair"))
        assert changed.policy is not None
        assert (changed.policy.max_attempts, changed.policy.groups) == (3, "fair")
        configure(store, group="g", weight=2)
        assert [lane.own.weight for lane in store.execute(Groups(JOBS)).lanes if lane.name == "g"] == [2]

    def test_a_repeated_take_brings_the_same_messages(self, store: Store) -> None:
        configure(store, limit=4)
        put(store, "a")
        take = Claim(JOBS, take=True, id="again")
        first, again = store.execute(take), store.execute(take)
        assert first.careful
        assert (again.messages, again.careful) == (first.messages, False)

    def test_the_last_come_first_also_where_priorities_age(self, store: Store, clock: FakeClock) -> None:
        configure(store, order="lifo", aging_s=2.0)
        for message_id in "ab":
            put(store, message_id)
            clock.advance(1)
        assert drain(store) == ["b", "a"]

    def test_groups_that_are_no_more_wake_nobody(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        configure(store, group="g", throttle_s=2.0)
        configure(store, groups=None, order="lifo")
        clock.advance(2)
        assert store.execute(Claim(JOBS)).due_in_s is None

    def test_what_ends_when_nothing_is_kept_any_more_is_gone(self, store: Store) -> None:
        configure(store, keep_done_s=30.0)
        put(store, "a")
        held = claim_one(store)
        configure(store, keep_done_s=None)
        settle(store, [held])
        assert look(store, "a") is None

    def test_a_claim_under_a_limit_that_is_no_more_is_counted_no_more(self, store: Store) -> None:
        configure(store, limit=2)
        put(store, "a")
        held = claim_one(store)
        configure(store, limit=None)
        settle(store, [held])
        assert settings(store).live == 0

    def test_groups_follow_limits_that_come_and_go_at_once(self, store: Store) -> None:
        configure(store, groups="fair", group_limit=1, group_rate=Rate(1, per_s=1.0))
        put(store, "a1", "a2", group="a")
        assert ids(claim(store)) == ["a1"]
        configure(store, limit=5, group_limit=None)
        assert store.execute(Claim(JOBS)).due_in_s == 1.0

    def test_only_groups_that_gave_something_make_a_claim_careful(self, store: Store) -> None:
        configure(store, groups="fair")
        configure(store, group="a", weight=5)
        configure(store, group="b", limit=1)
        put(store, "a1", "a2", group="a")
        put(store, "b1", group="b")
        claimed = store.execute(Claim(JOBS, limit=2))
        assert (ids(claimed.messages), claimed.careful) == (["a1", "a2"], False)

    def test_a_rate_that_is_given_back_opens_its_group_whatever_becomes_of_the_message(self, store: Store) -> None:
        configure(store, groups="fair", group_rate=Rate(1, per_s=10.0), max_attempts=1)
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="ready", counts=True, unstarted=True)
        assert ids(claim(store)) == ["a2"]

    def test_a_group_that_is_held_is_told_of_before_its_message_is_moved(self, store: Store) -> None:
        configure(store, groups="strict", group_dead="hold")
        put(store, "a", "b", group="g")
        settle(store, [claim_one(store)], to="dead", dead_letter="graves")
        events = store.execute(Changes(queue_topic(JOBS), limit=100)).events
        assert [event.event for event in events][-3:] == ["settled", "configured", "buried"]

    def test_those_not_started_in_time_are_told_of_in_the_order_in_which_time_overtook_them(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        put(store, "in line", start_within_s=3.0)
        put(store, "delayed", delay_s=1.0, start_within_s=5.0)
        clock.advance(10)
        assert claim(store) == []
        events = store.execute(Changes(queue_topic(JOBS), limit=100)).events
        told = [json.decode(event.data)["ids"] for event in events if event.event == "expired"]
        assert told == [["delayed", "in line"]]
