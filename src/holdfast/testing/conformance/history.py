"""Finished messages that are kept for a while."""

from holdfast.commands import Browse, Claim, Clear, Filter, Prune
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, drain, ids, look, move, put, see, settle, stats
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure


class HistoryConformance(Conformance):
    """A message that is done stays to be seen as long as the queue says, and is in nobody's way."""

    def test_what_is_done_is_kept_with_its_holder_and_its_end(self, store: Store, clock: FakeClock) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a", group="g")
        held = claim_one(store, holder="ann")
        clock.advance(2)
        settle(store, [held])
        kept = see(store, "a")
        assert (kept.state, kept.holder, kept.token, kept.group) == ("done", "ann", held.token, "g")
        assert (kept.since, kept.ended_at) == (clock.now_us() - 2_000_000, clock.now_us())
        assert ids(browse(store, "done")) == ["a"]
        assert (stats(store).done, stats(store).total) == (1, 0)

    def test_it_is_kept_once_the_policy_was_there_when_it_was_claimed(self, store: Store) -> None:
        put(store, "a", "b")
        first = claim_one(store)
        configure(store, keep_done_s=60.0)
        settle(store, [first, claim_one(store)])
        assert ids(browse(store, "done")) == ["b"]

    def test_what_is_taken_is_kept(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a")
        assert drain(store) == ["a"]
        assert see(store, "a").state == "done"

    def test_its_id_stays_taken_and_its_key_is_free(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a", key="k")
        settle(store, [claim_one(store)])
        assert put(store, "a", key="k").created == [False]
        assert put(store, "b", key="k").created == [True]

    def test_a_copy_behind_it_is_handed_out(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a", key="k")
        held = claim_one(store)
        put(store, "b", key="k")
        settle(store, [held])
        assert ids(claim(store)) == ["b"]

    def test_it_has_no_room(self, store: Store) -> None:
        configure(store, keep_done_s=60.0, maxsize=1)
        put(store, "a")
        settle(store, [claim_one(store)])
        put(store, "b")
        assert ids(claim(store)) == ["b"]

    def test_settlements_forget_what_was_kept_long_enough(self, store: Store, clock: FakeClock) -> None:
        configure(store, keep_done_s=60.0)
        put(store, *"abcd")
        settle(store, claim(store, 3))
        clock.advance(60)
        settle(store, [claim_one(store)])
        assert ids(browse(store, "done")) == ["c", "d"]

    def test_claims_that_find_nothing_forget_what_was_kept_long_enough(self, store: Store, clock: FakeClock) -> None:
        configure(store, keep_done_s=60.0)
        put(store, *"abc")
        settle(store, claim(store, 3))
        clock.advance(59)
        assert claim(store) == []
        assert stats(store).done == 3
        clock.advance(1)
        assert claim(store) == []
        assert (ids(browse(store, "done")), stats(store).done) == ([], 0)

    def test_pruning_forgets_what_was_kept_long_enough(self, store: Store, clock: FakeClock) -> None:
        configure(store, keep_done_s=60.0)
        put(store, *"abc")
        settle(store, claim(store, 3))
        clock.advance(59)
        store.execute(Prune())
        assert stats(store).done == 3
        clock.advance(1)
        store.execute(Prune())
        assert stats(store).done == 0
        assert look(store, "a") is None

    def test_pruning_leaves_what_is_done_where_it_is_told_to(self, store: Store, clock: FakeClock) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a")
        settle(store, [claim_one(store)])
        clock.advance(60)
        store.execute(Prune(done=False))
        assert stats(store).done == 1

    def test_pruning_forgets_all_that_is_done_once_no_policy_keeps_it(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a")
        settle(store, [claim_one(store)])
        configure(store, keep_done_s=None)
        store.execute(Prune())
        assert stats(store).done == 0

    def test_it_is_listed_by_its_end_page_by_page(self, store: Store, clock: FakeClock) -> None:
        configure(store, keep_done_s=60.0)
        put(store, *"abc")
        for held in reversed(claim(store, 3)):
            settle(store, [held])
            clock.advance(1)
        page = store.execute(Browse(JOBS, state="done", limit=2))
        assert ids(page.messages) == ["c", "b"]
        assert ids(browse(store, "done", after=page.after)) == ["a"]
        assert browse(store, "done", which=Filter(group="nobody")) == []

    def test_it_can_be_removed_and_run_again(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a", "b")
        settle(store, claim(store, 2))
        assert move(store, "gone", ids=["a"]) == ["a"]
        assert move(store, "ready", ids=["b"]) == ["b"]
        assert ids(claim(store)) == ["b"]
        assert see(store, "b").ended_at is None

    def test_it_is_counted_and_removed_when_its_queue_is_cleared(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a", "b")
        settle(store, [claim_one(store)])
        assert store.execute(Clear("queue", JOBS)) == 2
        assert (ids(browse(store, "done")), stats(store).done) == ([], 0)

    def test_it_cannot_be_settled_again(self, store: Store) -> None:
        configure(store, keep_done_s=60.0)
        put(store, "a")
        held = claim_one(store)
        assert settle(store, [held]) == [True]
        assert settle(store, [held]) == [False]
        assert store.execute(Claim(JOBS)).messages == []

    def test_a_traceback_is_kept_beside_the_error(self, store: Store) -> None:
        put(store, "a")
        settle(store, [claim_one(store)], to="ready", counts=True, error="broke", trace="x" * 20_000 + "end")
        failed = see(store, "a")
        assert (failed.last_error, len(failed.trace or ""), (failed.trace or "")[-3:]) == ("broke", 16_384, "end")
        settle(store, [claim_one(store)], to="dead", trace="dead end")
        assert see(store, "a").trace == "dead end"
