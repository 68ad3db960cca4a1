"""Groups: they take turns, or keep their order."""

from collections import Counter
from typing import Any

import pytest

from holdfast.commands import Browse, Claim, Clear, Configure, Count, Filter, Groups, Settle, Together
from holdfast.errors import Refused
from holdfast.records.policies import Lane
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, drain, ids, last_event, move, put, see, settle, stats
from holdfast.testing.conformance.factory import Conformance


class GroupConformance(Conformance):
    """Fair groups are served in turns, by weight; strict ones one message at a time, in order."""

    def test_groups_take_turns(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", "a3", group="a")
        put(store, "b1", group="b")
        put(store, "none")
        assert taken(store, 5) == ["a1", "b1", "none", "a2", "a3"]

    def test_a_batch_goes_round_and_the_next_goes_on_where_it_ended(self, store: Store) -> None:
        configure(store, groups="fair")
        for group in "abc":
            put(store, *(f"{group}{n}" for n in range(1, 5)), group=group)
        assert ids(claim(store, 4)) == ["a1", "b1", "c1", "a2"]
        assert ids(claim(store, 4)) == ["b2", "c2", "a3", "b3"]
        assert ids(claim(store, 10)) == ["c3", "a4", "b4", "c4"]

    @pytest.mark.parametrize("size", [1, 2, 7])
    def test_a_group_gets_as_many_as_its_weight_in_each_round(self, store: Store, size: int) -> None:
        configure(store, groups="fair")
        for group, weight in (("a", 5), ("b", 3), ("c", 1)):
            configure(store, group=group, weight=weight)
            put(store, *(f"{group}{n}" for n in range(100)), group=group)
        got = Counter(message.group for _ in range(126 // size) for message in claim(store, size))
        assert got == {"a": 70, "b": 42, "c": 14}

    def test_who_comes_is_served_after_one_turn_of_each_group(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, *(f"a{n}" for n in range(20)), group="a")
        assert taken(store, 3) == ["a0", "a1", "a2"]
        put(store, "b", group="b")
        assert "b" in taken(store, 2)

    def test_who_puts_one_at_a_time_gains_nothing(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, *(f"a{n}" for n in range(100)), group="a")
        got: Counter[str | None] = Counter()
        for number in range(50):
            if not number or "b" not in {message.group for message in browse(store)}:
                put(store, f"b{number}", group="b")
            got.update(message.group for message in claim(store, take=True))
        assert abs(got["a"] - got["b"]) <= 1

    def test_priority_orders_within_a_group_only(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", group="a")
        put(store, "b1", group="b")
        put(store, "b2", group="b", priority=9)
        assert taken(store, 4) == ["a1", "b2", "a2", "b1"]

    def test_a_delayed_message_joins_its_group_when_it_is_due(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        put(store, "later", group="a", delay_s=5.0, priority=3)
        put(store, "now", group="a")
        assert (stats(store).ready, stats(store).delayed) == (1, 1)
        assert taken(store, 2) == ["now"]
        assert store.execute(Claim(JOBS)).due_in_s == 5.0
        clock.advance(5)
        assert taken(store, 1) == ["later"]

    def test_a_fair_group_goes_on_while_one_of_its_messages_waits_for_a_retry(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="ready", counts=True, delay_s=5.0)
        assert ids(claim(store, 2)) == ["a2"]
        clock.advance(5)
        assert ids(claim(store, 2)) == ["a1"]

    def test_a_strict_group_hands_out_one_at_a_time_in_order(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        put(store, "b1", "b2", group="b")
        first = claim(store, 10)
        assert ids(first) == ["a1", "b1"]
        assert claim(store, 10) == []
        settle(store, first[:1])
        assert ids(claim(store, 10)) == ["a2"]

    @pytest.mark.parametrize("options", [{"return_to": "back"}, {"return_to": "front", "counts": True}, {"counts": True}])
    def test_a_strict_group_keeps_its_order_however_its_head_comes_back(
        self, store: Store, clock: FakeClock, options: dict[str, Any]
    ) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        put(store, "a0", group="a", priority=7)
        clock.advance(1)
        settle(store, [claim_one(store)], to="ready", **options)
        assert taken(store, 3) == ["a1", "a2", "a0"]

    def test_a_delayed_retry_holds_its_strict_group_and_no_other(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="ready", counts=True, delay_s=5.0)
        put(store, "b1", group="b")
        assert taken(store, 3) == ["b1"]
        assert store.execute(Claim(JOBS)).due_in_s == 5.0
        clock.advance(5)
        assert taken(store, 3) == ["a1", "a2"]

    def test_an_ended_lease_gives_a_strict_message_its_place_back(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        claim_one(store, lease_s=5.0, expired_to="back")
        clock.advance(5)
        assert ids(claim(store, 5)) == ["a1"]

    def test_a_strict_group_goes_on_when_its_head_dies(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="dead")
        assert ids(claim(store)) == ["a2"]

    def test_a_strict_group_is_held_by_its_dead_head_until_that_is_redriven(self, store: Store) -> None:
        configure(store, groups="strict", group_dead="hold")
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="dead")
        assert claim(store) == []
        assert (lane(store, "a").own.paused, lane(store, "a").own.held) == (True, "a1")
        move(store, "ready", ids=["a1"])
        assert taken(store, 2) == ["a1", "a2"]

    @pytest.mark.parametrize("way", ["removed", "resumed"])
    def test_a_held_group_goes_on_when_its_dead_head_is_removed_or_it_is_resumed(self, store: Store, way: str) -> None:
        configure(store, groups="strict", group_dead="hold")
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="dead")
        if way == "removed":
            move(store, "gone", ids=["a1"])
        else:
            configure(store, group="a", paused=False)
        assert ids(claim(store)) == ["a2"]

    def test_a_redriven_message_has_its_place_in_a_strict_group(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        settle(store, [claim_one(store)], to="dead")
        move(store, "ready", ids=["a1"])
        assert taken(store, 2) == ["a1", "a2"]

    def test_a_cancelled_head_lets_its_strict_group_go_on(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        move(store, "gone", ids=["a1"])
        assert ids(claim(store)) == ["a2"]

    def test_a_paused_group_gives_nothing_and_keeps_its_turn(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", group="a")
        put(store, "b1", "b2", group="b")
        configure(store, group="a", paused=True)
        put(store, "a3", group="a")
        assert taken(store, 5) == ["b1", "b2"]
        configure(store, group="a", paused=False)
        put(store, "b3", group="b")
        assert taken(store, 5) == ["a1", "b3", "a2", "a3"]

    def test_a_throttled_group_gives_nothing_for_a_while(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        put(store, "a1", group="a")
        put(store, "b1", group="b")
        configure(store, group="a", throttle_s=30.0)
        assert taken(store, 2) == ["b1"]
        assert store.execute(Claim(JOBS)).due_in_s == 30.0
        clock.advance(30)
        assert taken(store, 2) == ["a1"]

    def test_a_claim_by_key_passes_the_turn_but_not_the_order(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", group="a", key="one")
        put(store, "a2", group="a", key="two")
        assert claim(store, key="two") == []
        settle(store, claim(store, key="one"))
        assert ids(claim(store, key="two")) == ["a2"]

    def test_a_settlement_and_a_claim_in_one_step_hand_out_the_next_of_a_full_group(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        first = claim_one(store)
        _, claimed = store.execute(Together([Settle([first.receipt]), Claim(JOBS, "worker", 30.0)]))
        assert ids(claimed.messages) == ["a2"]

    def test_a_copy_in_the_same_group_takes_the_place_of_the_first(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="strict")
        put(store, "old", group="a", key="k")
        clock.advance(1)
        put(store, "other", group="a")
        held = claim_one(store)
        put(store, "new", group="a", key="k")
        settle(store, [held])
        assert taken(store, 2) == ["new", "other"]

    def test_taking_needs_no_slot_but_waits_for_the_holder_of_a_strict_group(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", "a3", group="a")
        held = claim_one(store)
        assert drain(store) == []
        settle(store, [held])
        assert taken(store, 2) == ["a2", "a3"]

    def test_a_group_is_a_label_in_a_queue_without_groups(self, store: Store) -> None:
        put(store, "a1", group="a")
        put(store, "b1", group="b")
        put(store, "none")
        assert ids(browse(store, which=Filter(group="a"))) == ["a1"]
        assert ids(browse(store, which=Filter(group=""))) == ["none"]
        assert store.execute(Count(JOBS, Filter(group="b"))).ready == 1
        assert [message.group for message in claim(store, 3)] == ["a", "b", None]
        assert store.execute(Groups(JOBS)).lanes == []

    def test_events_tell_the_groups(self, store: Store) -> None:
        put(store, "a1", group="a")
        assert last_event(store)[1]["groups"] == ["a"]
        held = claim_one(store)
        assert last_event(store)[1]["groups"] == ["a"]
        settle(store, [held])
        assert last_event(store) == ("settled", {"ids": ["a1"], "groups": ["a"], "to": "done"})

    def test_groups_are_listed_by_name_while_there_is_something_to_know_of_them(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "b1", group="b")
        put(store, "a1", group="a")
        configure(store, group="c", weight=2)
        assert names(store) == ["a", "b", "c"]
        page = store.execute(Groups(JOBS, limit=2))
        assert ([one.name for one in page.lanes], page.more) == (["a", "b"], True)
        assert [one.name for one in store.execute(Groups(JOBS, after="b")).lanes] == ["c"]
        assert [one.name for one in store.execute(Groups(JOBS, prefix="b")).lanes] == ["b"]
        settle(store, claim(store, 5))
        assert names(store) == ["c"]
        configure(store, group="c", forget=True)
        assert names(store) == []

    def test_a_queue_gets_groups_with_what_is_in_it(self, store: Store, clock: FakeClock) -> None:
        put(store, "a1", "a2", group="a")
        put(store, "b1", group="b")
        put(store, "later", group="b", delay_s=5.0)
        held = claim_one(store)
        configure(store, groups="strict")
        assert ids(claim(store, 5)) == ["b1"]
        settle(store, [held])
        assert ids(claim(store, 5)) == ["a2"]
        configure(store, groups=None)
        clock.advance(5)
        assert ids(claim(store, 5)) == ["later"]

    def test_fair_groups_become_strict_with_their_claims(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", "a3", group="a")
        held = claim(store, 2)
        configure(store, groups="strict")
        settle(store, held[:1])
        assert claim(store) == []
        settle(store, held[1:])
        assert ids(claim(store)) == ["a3"]

    def test_policies_that_clash_are_refused(self, store: Store) -> None:
        configure(store, groups="strict")
        for policy in ({"order": "lifo"}, {"aging_s": 1.0}, {"group_limit": 2}, {"group": "a", "limit": 2}):
            with pytest.raises(Refused):
                configure(store, **policy)

    def test_clearing_a_queue_leaves_only_the_settings_of_its_groups(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", "a2", group="a")
        put(store, "b1", group="b")
        configure(store, group="a", weight=4)
        claim(store, 2)
        store.execute(Clear("queue", JOBS))
        assert [(one.name, one.live, one.open) for one in store.execute(Groups(JOBS)).lanes] == [("a", 0, False)]
        put(store, "a9", group="a")
        assert ids(claim(store)) == ["a9"]
        store.execute(Clear("queue", JOBS, drop=True))
        assert names(store) == []

    def test_a_dead_letter_keeps_its_group(self, store: Store) -> None:
        configure(store, groups="fair")
        store.execute(Configure("queue", "graves", groups="fair"))
        put(store, "a1", group="a", dead_letter="graves")
        settle(store, [claim_one(store)], to="dead")
        assert see(store, "a1", "graves").group == "a"
        assert [one.name for one in store.execute(Groups("graves")).lanes] == ["a"]
        assert ids(claim(store, queue="graves")) == ["a1"]

    def test_a_late_message_does_not_hold_its_group(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="strict")
        put(store, "late", group="a", start_within_s=1.0)
        put(store, "a2", group="a")
        clock.advance(1)
        assert ids(claim(store, 2)) == ["a2"]

    def test_browsing_shows_ready_messages_of_all_groups_by_position(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        for name in ("a1", "b1", "a2"):
            put(store, name, group=name[0])
            clock.advance(1)
        page = store.execute(Browse(JOBS, limit=2))
        assert ids(page.messages) == ["a1", "b1"]
        assert ids(store.execute(Browse(JOBS, limit=2, after=page.after)).messages) == ["a2"]

    def test_what_was_delayed_in_its_group_is_handed_out_when_there_are_no_groups_any_more(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        put(store, "late", group="a", delay_s=5.0)
        put(store, "first", group="a")
        put(store, "soon", group="b", delay_s=1.0)
        clock.advance(10)
        configure(store, groups=None)
        assert ids(claim(store, 3)) == ["first", "soon", "late"]


def configure(store: Store, **policies: Any) -> None:
    store.execute(Configure("queue", JOBS, **policies))


def taken(store: Store, count: int) -> list[str]:
    """The ids of so many messages, claimed and settled one by one."""
    found = []
    for _ in range(count):
        messages = claim(store)
        settle(store, messages)
        found += ids(messages)
    return found


def names(store: Store) -> list[str]:
    return [lane.name for lane in store.execute(Groups(JOBS)).lanes]


def lane(store: Store, name: str) -> Lane:
    return next(lane for lane in store.execute(Groups(JOBS)).lanes if lane.name == name)
