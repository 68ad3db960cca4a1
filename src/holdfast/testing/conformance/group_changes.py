"""Groups: what brings their lanes up to date, and what leaves them as they are."""

from msgspec import json

from holdfast.commands import Claim, Groups
from holdfast.rates import Rate
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, events, ids, move, put, settle
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure, lane, names


class GroupChangeConformance(Conformance):
    """A change touches the lanes of the messages that it moves, and no others."""

    def test_a_claim_that_found_nothing_is_told_again_without_saying_more(self, store: Store) -> None:
        configure(store, groups="strict")
        command = Claim(JOBS, "worker", 30.0, id="c1")
        assert store.execute(command).messages == []
        again = store.execute(command)
        assert (again.messages, again.due_in_s, again.careful) == ([], 0.0, False)

    def test_late_messages_are_told_of_in_the_order_in_which_time_overtook_them(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair")
        put(store, "delayed", group="a", delay_s=2.0, start_within_s=5.0)
        put(store, "ready", group="a", start_within_s=4.0)
        clock.advance(10)
        assert claim(store) == []
        told = [event.data for event in events(store, f"queue:{JOBS}") if event.event == "expired"]
        assert len(told) == 1
        assert bytes(told[0]).index(b"delayed") < bytes(told[0]).index(b"ready")

    def test_a_group_goes_when_its_last_message_is_moved_to_another_queue(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "a1", "a2", group="a")
        assert move(store, "ready", state="ready", to_queue="other") == ["a1", "a2"]
        assert names(store) == []

    def test_a_message_that_was_claimed_elsewhere_is_claimed_again_where_it_was_moved_to(self, store: Store) -> None:
        configure(store, groups="fair")
        put(store, "m1", queue="other")
        (first,) = claim(store, queue="other")
        settle(store, [first], to="dead")
        assert move(store, "ready", queue="other", to_queue=JOBS) == ["m1"]
        (again,) = claim(store)
        assert (again.state, again.attempts, again.token > first.token) == ("leased", 2, True)
        assert settle(store, [again]) == [True]

    def test_a_limit_of_the_queue_leaves_groups_alone_of_which_nothing_is_claimed(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair", group_rate=Rate(1, per_s=1.0))
        put(store, "a1", "a2", group="a")
        settle(store, claim(store))
        clock.advance(2)
        configure(store, limit=4)
        assert not lane(store, "a").open  # The next claim opens it.
        assert ids(claim(store)) == ["a2"]

    def test_an_update_of_a_value_leaves_the_group_alone_and_a_delayed_message_does_not(self, store: Store) -> None:
        configure(store, groups="strict")
        put(store, "a1", group="a")
        put(store, "keyed", group="a", key="k", delay_s=60.0)
        put(store, "a3", group="a")
        assert ids(claim(store)) == ["a1"]
        configure(store, groups="fair")
        put(store, "again", group="a", key="k", if_ready="update")
        assert not lane(store, "a").open
        put(store, "later", group="a", delay_s=60.0)
        assert lane(store, "a").open

    def test_a_queue_without_groups_keeps_no_rates_of_groups(self, store: Store) -> None:
        configure(store, groups="fair", group_rate=Rate(1, per_s=60.0))
        put(store, "a1", "a2", group="a")
        settle(store, claim(store))
        configure(store, groups=None)
        assert names(store) == []

    def test_another_order_keeps_what_was_used_of_a_rate(self, store: Store, clock: FakeClock) -> None:
        configure(store, groups="fair", group_rate=Rate(1, per_s=1.0))
        put(store, "a1", "a2", group="a")
        settle(store, claim(store))
        used = lane(store, "a").tat
        clock.advance(5)
        configure(store, order="lifo")
        assert [one.tat for one in store.execute(Groups(JOBS)).lanes] == [used]

    def test_groups_that_are_held_are_told_of_in_the_order_in_which_their_messages_died(self, store: Store) -> None:
        configure(store, groups="strict", group_dead="hold")
        put(store, "b1", group="b")
        put(store, "a1", group="a")
        settle(store, claim(store, 2), to="dead")
        told = [json.decode(event.data) for event in events(store, f"queue:{JOBS}") if event.event == "configured"]
        assert [facts["group"] for facts in told if "group" in facts] == ["b", "a"]

    def test_one_group_says_what_it_hands_out_and_how_many_are_served_before_it(self, store: Store) -> None:
        def seen(name: str) -> tuple[list[str], str | None, int]:
            found = store.execute(Groups(JOBS, prefix=name, exact=True))
            return [one.name for one in found.lanes], found.head, found.ahead

        configure(store, groups="fair")
        for group in ("b", "ba", "a"):
            put(store, f"{group}1", f"{group}2", group=group)
        assert [seen(group) for group in ("b", "ba", "a", "")] == [(["b"], "b1", 0), (["ba"], "ba1", 1), (["a"], "a1", 2), ([], None, 0)]
        assert ids(claim(store)) == ["b1"]
        configure(store, group="ba", paused=True)
        assert [seen(group) for group in ("b", "ba", "a")] == [(["b"], "b2", 1), (["ba"], "ba1", 0), (["a"], "a1", 0)]
