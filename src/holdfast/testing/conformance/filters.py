"""A command with a filter looks at a bounded part of a queue, and says where to go on."""

from holdfast.commands import Browse, Count, Filter, Move, Stats
from holdfast.commands.filtered import LOOKED_AT
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, ids, put, stats
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.looking import fill

RED = Filter(label="red")


class FilterConformance(Conformance):
    """What a filter finds in a queue that is larger than what one command looks at."""

    def test_a_filter_looks_at_a_part_of_a_queue_and_says_where_to_go_on(self, store: Store) -> None:
        put(store, *[str(number) for number in range(LOOKED_AT)])
        put(store, "needle", labels=("red",))
        first = store.execute(Browse(JOBS, which=RED, limit=1))
        assert first.messages == []
        assert first.after is not None
        second = store.execute(Browse(JOBS, which=RED, after=first.after, limit=LOOKED_AT))
        assert (ids(second.messages), second.after) == (["needle"], None)
        moved = store.execute(Move(JOBS, "gone", state="ready", which=RED))
        assert (moved.ids, moved.after) == ([], first.after)
        moved = store.execute(Move(JOBS, "gone", state="ready", which=RED, after=moved.after))
        assert (moved.ids, moved.after) == (["needle"], None)

    def test_what_a_filter_finds_is_counted_part_by_part(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock, labels=("red",))
        every = stats(store)
        put(store, *[str(number) for number in range(LOOKED_AT)])
        clock.advance(5)
        part = stats(store, which=RED)
        assert (part.ready, part.total) == (3, 3), "so many of those that one command looks at"
        assert part.after is not None
        rest = store.execute(Count(JOBS, RED, part.after))
        whole = part.joined(rest)
        assert (whole.ready, whole.delayed, whole.buffered, whole.leased, whole.dead) == (3, 1, 1, 2, 2)
        assert (whole.total, whole.holders, whole.after) == (every.total, every.holders, None)
        assert (whole.oldest_ready_s, whole.oldest_leased_s, whole.average_leased_s, whole.oldest_dead_s) == (5, 5, 5, 6)

    def test_a_page_ends_behind_as_many_as_were_asked_for(self, store: Store) -> None:
        put(store, "a", "b", "c", "d", labels=("red",))
        page = store.execute(Browse(JOBS, which=RED, limit=2))
        assert ids(page.messages) == ["a", "b"]
        assert ids(store.execute(Browse(JOBS, which=RED, after=page.after, limit=3)).messages) == ["c", "d"]
        moved = store.execute(Move(JOBS, "gone", state="ready", which=RED, after=page.after, limit=1))
        assert moved.ids == ["c"]
        assert ids(store.execute(Browse(JOBS, which=RED, after=moved.after)).messages) == ["d"]

    def test_stats_of_nothing_that_a_filter_finds_are_empty(self, store: Store) -> None:
        put(store, "a")
        assert stats(store, which=RED) == Stats()
