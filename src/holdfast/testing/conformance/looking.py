"""Looking at a queue without touching it, and what administrators do with messages that nobody holds."""

from typing import Any

import pytest

from holdfast.commands import Browse, Browsed, Configure, Count, Counts, Filter, Names, Stats
from holdfast.records import State
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, drain, ids, look, move, put, see, settle, stats, value
from holdfast.testing.conformance.factory import Conformance


class LookConformance(Conformance):
    """Browsing, counting and moving."""

    def test_one_queue_is_asked_for_by_its_exact_name(self, store: Store) -> None:
        for name in ("jobs", "jobs-old"):
            store.execute(Configure("queue", name))
        assert [one.name for one in store.execute(Names("queue", "jobs", exact=True)).settings] == ["jobs"]
        assert store.execute(Names("queue", "job", exact=True)).settings == []

    def test_browsing_shows_each_state_in_its_own_order(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        assert ids(browse(store, "ready")) == ["urgent", "ready-1", "ready-2", "delayed"]
        assert ids(browse(store, "leased")) == ["leased-2", "leased-1"], "by the end of the lease"
        assert ids(browse(store, "dead")) == ["dead-2", "dead-1"], "by burial"
        assert ids(browse(store, "buffered")) == ["copy"]

    def test_claims_are_browsed_page_by_page_those_without_an_end_last(self, store: Store) -> None:
        put(store, "a", "b", "c", "d")
        for lease_s in (None, 60.0, None, 30.0):
            claim(store, 1, lease_s=lease_s)
        found, page = list[str](), store.execute(Browse(JOBS, state="leased", limit=1))
        while page.messages:
            found += ids(page.messages)
            page = store.execute(Browse(JOBS, state="leased", after=page.after, limit=1)) if page.after is not None else Browsed([])
        assert found == ["d", "b", "a", "c"]

    def test_browsing_touches_nothing(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        before = browse(store)
        clock.advance(1)
        assert browse(store) == before
        assert (before[0].attempts, value(before[0])) == (0, "a")

    def test_browsing_page_by_page_sees_each_message_once(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        for state, count in (("ready", 4), ("leased", 2), ("dead", 2), ("buffered", 1)):
            assert pages(store, state, 1) == ids(browse(store, state)), f"page by page, {state} messages are not the same"  # type: ignore[arg-type]
            assert len(pages(store, state, 3)) == count  # type: ignore[arg-type]

    def test_paging_through_messages_of_one_moment_skips_none(self, store: Store) -> None:
        put(store, *[f"{number:03}" for number in range(25)])
        assert pages(store, "ready", 7) == [f"{number:03}" for number in range(25)]

    def test_the_last_page_says_that_there_is_no_more(self, store: Store) -> None:
        put(store, "a", "b", "c")
        assert store.execute(Browse(JOBS, limit=4)).after is None

    def test_messages_are_found_by_id_in_whatever_state_and_in_the_order_asked(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        asked = ["dead-1", "copy", "missing", "leased-1", "ready-1"]
        found = store.execute(Browse(JOBS, ids=asked)).messages
        assert [(m.id, m.state) for m in found] == [("dead-1", "dead"), ("copy", "buffered"), ("leased-1", "leased"), ("ready-1", "ready")]

    def test_messages_are_found_by_key_with_the_copies_behind_them(self, store: Store) -> None:
        put(store, "a", key="one")
        claim(store)
        put(store, "copy", key="one")
        put(store, "b", key="two")
        put(store, "without")
        found = store.execute(Browse(JOBS, keys=["two", "missing", "one", "two"])).messages
        assert [(m.id, m.state, value(m)) for m in found] == [("b", "ready", "b"), ("a", "leased", "a"), ("copy", "buffered", "copy")]

    def test_a_dead_letter_is_not_found_by_its_key(self, store: Store) -> None:
        put(store, "a", key="one")
        settle(store, claim(store), to="dead")
        assert store.execute(Browse(JOBS, keys=["one"])).messages == []

    def test_browsing_by_id_and_by_key_at_once_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not both"):
            Browse(JOBS, ids=["a"], keys=["a"])

    def test_stats_count_every_state(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        counted = stats(store)
        assert (counted.ready, counted.delayed, counted.buffered, counted.leased, counted.dead) == (3, 1, 1, 2, 2)
        assert counted.total == 9
        assert counted.holders == {"worker": 1, "other": 1}

    def test_all_queues_are_counted_at_once_page_by_page(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        for queue in ("a", "jobs-2", "jobs-3", "z"):
            put(store, f"of {queue}", queue=queue)
        store.execute(Configure("queue", "empty"))
        found = store.execute(Counts()).queues
        assert [one.name for one in found] == ["a", "empty", "jobs", "jobs-2", "jobs-3", "z"]
        assert [one.stats for one in found] == [stats(store, one.name) for one in found]
        page = store.execute(Counts("jobs", limit=2))
        assert ([one.name for one in page.queues], page.more) == (["jobs", "jobs-2"], True)
        assert [one.name for one in store.execute(Counts("jobs", after="jobs-2", limit=2)).queues] == ["jobs-3"]
        assert store.execute(Counts("none")).queues == []

    def test_stats_of_a_queue_that_does_not_exist_are_empty(self, store: Store) -> None:
        assert store.execute(Count("nowhere")).total == 0
        assert store.execute(Count("nowhere")).oldest_ready_s is None

    def test_a_message_whose_lease_has_ended_counts_as_ready(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        claim(store, lease_s=5)
        clock.advance(5)
        counted = stats(store)
        assert (counted.ready, counted.leased, counted.holders) == (1, 0, {})

    def test_a_delayed_message_counts_as_ready_once_it_is_due(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", delay_s=5)
        assert (stats(store).ready, stats(store).delayed) == (0, 1)
        clock.advance(5)
        assert (stats(store).ready, stats(store).delayed) == (1, 0)

    def test_stats_tell_ages(self, store: Store, clock: FakeClock) -> None:
        put(store, "dead", "leased")
        settle(store, claim(store), to="dead")
        clock.advance(1)
        claim(store, lease_s=60)
        clock.advance(2)
        put(store, "ready")
        clock.advance(4)
        counted = stats(store)
        assert (counted.oldest_ready_s, counted.oldest_leased_s, counted.average_leased_s, counted.oldest_dead_s) == (4, 6, 6, 7)

    def test_a_filter_narrows_by_time_error_class_and_text_of_the_value(self, store: Store, clock: FakeClock) -> None:
        put(store, "old", value={"to": "ann@example.org"})
        clock.advance(10)
        put(store, "new", value={"to": "bob@example.org", "note": "ünïcode " * 5_000})
        assert ids(browse(store, which=Filter(newer_than_s=10))) == ["old", "new"]
        assert ids(browse(store, which=Filter(newer_than_s=9))) == ["new"]
        assert ids(browse(store, which=Filter(newer_than_s=20, older_than_s=5))) == ["old"]
        assert ids(browse(store, which=Filter(value_contains="ann@"))) == ["old"]
        assert ids(browse(store, which=Filter(value_contains="ünïcode"))) == ["new"], "also where it is large"
        assert ids(browse(store, which=Filter(value_contains="%"))) == [], "a filter's text is no pattern"
        old, new = claim(store, 2)
        settle(store, [old], to="dead", error="ValueError: no: such thing")
        settle(store, [new], to="dead", error="ValueErrors")
        assert ids(browse(store, "dead", which=Filter(error_class="ValueError"))) == ["old"]
        assert ids(browse(store, "dead", which=Filter(error_class="ValueErrors"))) == ["new"]
        assert ids(browse(store, "dead", which=Filter(error_class="Value"))) == []
        clock.advance(10)
        assert ids(browse(store, "dead", which=Filter(newer_than_s=10))) == ["old", "new"], "since the burial"
        assert move(store, "gone", state="dead", which=Filter(error_class="ValueError")) == ["old"]

    def test_a_filter_by_age_counts_from_burial_for_the_dead_and_from_the_put_for_others(self, store: Store, clock: FakeClock) -> None:
        put(store, "old", "buried-lately")
        clock.advance(100)
        settle(store, claim(store, 2)[1:], to="dead")
        put(store, "young")
        clock.advance(10)
        assert ids(browse(store, "dead", which=Filter(older_than_s=50))) == []
        assert ids(browse(store, "dead", which=Filter(older_than_s=9))) == ["buried-lately"]
        assert ids(browse(store, "leased", which=Filter(older_than_s=50))) == ["old"]
        assert ids(browse(store, "ready", which=Filter(older_than_s=50))) == []

    def test_a_filter_finds_part_of_the_last_error(self, store: Store) -> None:
        for message_id, error in (("a", "disk full 100%"), ("b", "disk_full"), ("c", None)):
            put(store, message_id)
            settle(store, claim(store), to="dead", error=error)
        assert ids(browse(store, "dead", which=Filter(error_contains="full"))) == ["a", "b"]
        assert ids(browse(store, "dead", which=Filter(error_contains="0%"))) == ["a"]
        assert ids(browse(store, "dead", which=Filter(error_contains="k_f"))) == ["b"], "a filter's text is no pattern"

    def test_a_filter_finds_labels_whatever_becomes_of_a_message(self, store: Store) -> None:
        put(store, "a", labels=("red", "round"))
        put(store, "b", labels=("redder",))
        put(store, "c", key='"k"', labels=("red",))
        assert ids(browse(store, "ready", which=Filter(label="red"))) == ["a", "c"]
        assert [message.labels for message in browse(store, "ready")] == [("red", "round"), ("redder",), ("red",)]
        put(store, "d", key='"k"', labels=("blue",))
        assert ids(browse(store, "ready", which=Filter(label="blue"))) == ["c"], "an update gives it the labels of the update"
        (first,) = claim(store)
        assert first.labels == ("red", "round")
        settle(store, [first], to="dead", dead_letter="graves")
        assert ids(browse(store, "ready", queue="graves", which=Filter(label="round"))) == ["a"], "a dead letter keeps its labels"

    def test_what_a_filter_finds_is_counted_in_every_state(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock, labels=("red",))
        every = stats(store)
        put(store, "blue", labels=("blue", "redder"))
        put(store, "none")
        assert stats(store).total == every.total + 2
        assert stats(store, which=Filter(label="red")) == every
        assert stats(store, which=Filter(label="redder")).total == 1
        assert stats(store, which=Filter(label="green")) == Stats()
        clock.advance(31)
        red = stats(store, which=Filter(label="red"))
        assert (red.ready, red.leased, red.holders) == (4, 1, {"worker": 1}), "a message whose lease has ended counts as ready"
        assert red.oldest_ready_s == 31

    def test_a_filter_counts_ages_from_the_burial_of_the_dead_and_from_the_put_of_others(self, store: Store, clock: FakeClock) -> None:
        put(store, "old", key='"k"')
        put(store, "buried-lately")
        clock.advance(100)
        settle(store, claim(store, 2)[1:], to="dead")
        put(store, "young")
        clock.advance(10)
        assert [stats(store, which=Filter(older_than_s=age)).dead for age in (50, 9)] == [0, 1]
        assert [stats(store, which=Filter(newer_than_s=age)).dead for age in (50, 9)] == [1, 0]
        assert stats(store, which=Filter(older_than_s=50, key_prefix='"')).leased == 1
        assert stats(store, which=Filter(newer_than_s=50)).ready == 1

    def test_a_filter_finds_keys_by_prefix(self, store: Store) -> None:
        for key in ('"user:1"', '"user:2"', '"order:1"', '"user_1"'):
            put(store, key, key=key)
        put(store, "none")
        assert ids(browse(store, which=Filter(key_prefix='"user:'))) == ['"user:1"', '"user:2"']

    def test_filters_narrow_together(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", key='"x1"')
        clock.advance(10)
        put(store, "b", key='"x2"')
        assert ids(browse(store, which=Filter(older_than_s=9, key_prefix='"x'))) == ["a"]

    def test_messages_can_be_removed_by_id_whatever_their_state_but_held(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        asked = ["ready-1", "delayed", "leased-1", "dead-1", "missing"]
        assert move(store, "gone", ids=asked) == ["ready-1", "delayed", "dead-1"]
        assert stats(store).leased == 2, "what somebody holds stays"
        assert look(store, "ready-1") is None

    @pytest.mark.parametrize("to", ["gone", "dead", "ready"])
    def test_an_id_given_twice_is_moved_once(self, store: Store, to: str) -> None:
        put(store, "a", "b")
        assert move(store, to, ids=["a", "b", "a"]) == ["a", "b"]

    def test_an_ended_lease_protects_nothing(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=1)
        clock.advance(1)
        assert move(store, "gone", ids=["a"]) == ["a"]
        assert settle(store, held) == [False]

    def test_the_dead_can_be_pruned_by_filter_and_limit(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b", "c", "d")
        settle(store, claim(store, 3), to="dead")
        clock.advance(10)
        settle(store, claim(store), to="dead")
        assert move(store, "gone", which=Filter(older_than_s=9), limit=2) == ["a", "b"]
        assert ids(browse(store, "dead")) == ["c", "d"]

    def test_ready_messages_can_be_buried_by_hand(self, store: Store) -> None:
        put(store, "a", "b")
        assert move(store, "dead", ids=["a"], error="cancelled") == ["a"]
        assert drain(store) == ["b"]
        dead = see(store, "a")
        assert (dead.state, dead.last_error, dead.failures) == ("dead", "cancelled", 0)

    def test_a_burial_by_hand_follows_the_dead_letter_queue(self, store: Store) -> None:
        put(store, "a", dead_letter="graves")
        move(store, "dead", ids=["a"])
        assert drain(store, "graves") == ["a"]

    def test_moving_nothing_says_so(self, store: Store) -> None:
        assert move(store, "ready") == []
        assert move(store, "gone", ids=["missing"]) == []

    def test_a_buffered_copy_can_be_removed(self, store: Store) -> None:
        put(store, "first", key='"k"')
        held = claim(store)
        put(store, "copy", key='"k"')
        assert move(store, "gone", ids=["copy"]) == ["copy"]
        settle(store, held)
        assert stats(store).total == 0


def fill(store: Store, clock: FakeClock, **options: Any) -> None:
    """One queue with messages in every state."""
    put(store, "dead-2", **options)
    put(store, "dead-1", **options)
    held = claim(store, 2)
    settle(store, held[:1], to="dead")
    clock.advance(1)
    settle(store, held[1:], to="dead")
    put(store, "leased-1", key='"k"', **options)
    claim(store, lease_s=60)
    put(store, "copy", key='"k"', **options)
    put(store, "leased-2", **options)
    claim(store, lease_s=30, holder="other")
    put(store, "ready-1", "ready-2", **options)
    put(store, "delayed", delay_s=60, **options)
    put(store, "urgent", priority=5, **options)


def pages(store: Store, state: State, limit: int) -> list[str]:
    """The ids of all messages of one state, read page by page."""
    found, after = [], None
    for _ in range(100):
        page = store.execute(Browse(JOBS, state=state, after=after, limit=limit))
        found += ids(page.messages)
        after = page.after
        if after is None:
            return found
    raise AssertionError(f"paging through {state} messages does not end")
