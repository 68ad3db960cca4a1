"""Moving to another store and from another store: nothing is lost, nothing is held twice, and nobody goes on with the old one."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast._sync.flows.copying import copy_all
from holdfast.commands import (
    BeginImport,
    Browse,
    Changes,
    Claim,
    Configure,
    Count,
    EndImport,
    Fences,
    Import,
    Leases,
    LowerFences,
    Names,
    Resize,
    Survey,
    Surveyed,
)
from holdfast.errors import Compacted, Refused, StoreMoved
from holdfast.records import Entry, Message, moment_in
from holdfast.results import CopyProgress
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import START_US, FakeClock
from holdfast.testing.conformance.asking import DICT, JOBS, acquire, claim, drain, grant, move, put, raw, read, settle, token, write
from holdfast.testing.conformance.contents import contents, fill
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.fences import import_fences
from holdfast.testing.randomness import BEYOND

LATER_S = 7_200.0
"""How far the other store's clock is ahead."""


class CopyConformance(Conformance):
    """A store as the source, and as the target, of a move; the other side is a store in memory, on a clock of its own."""

    @pytest.fixture
    def other(self) -> MemoryStore:
        return elsewhere()

    def test_everything_is_moved_out_as_it_was(self, store: Store, other: MemoryStore, clock: FakeClock) -> None:
        fill(store, clock)
        before = contents(store)
        copy(store, other)
        assert contents(other) == before

    def test_everything_is_moved_in_as_it_was(self, store: Store, other: MemoryStore) -> None:
        assert isinstance(other.clock, FakeClock)
        fill(other, other.clock)
        before = contents(other)
        copy(other, store)
        assert contents(store) == before

    def test_messages_of_one_moment_keep_their_order_whatever_their_state(self, store: Store, other: MemoryStore, clock: FakeClock) -> None:
        put(store, "a", "b", "c", "d")
        claim(store, 1, lease_s=1)
        b = claim(store, 1, lease_s=60)
        settle(store, b, to="ready", return_to="place")
        clock.advance(1)
        copy(store, other)
        assert drain(other) == ["a", "b", "c", "d"]

    def test_messages_put_after_the_move_come_behind_those_of_the_same_moment(self, store: Store, other: MemoryStore) -> None:
        for number in range(5):
            put(other, str(number))
        copy(other, store)
        moved = store.execute(Browse(JOBS)).messages
        put(store, "new")
        found = store.execute(Browse(JOBS, ids=["new"])).messages
        assert found[0].n > max(message.n for message in moved)

    @pytest.mark.parametrize("is_source", [True, False])
    def test_what_remains_of_a_delay_is_carried_over(self, store: Store, other: MemoryStore, clock: FakeClock, is_source: bool) -> None:
        source, target = (store, other) if is_source else (other, store)
        put(source, "a", delay_s=60)
        write(source, "k", 1, ttl_s=60)
        assert isinstance(other.clock, FakeClock)
        for each in (clock, other.clock):
            each.advance(20)
        copy(source, target)
        assert target.execute(Claim(JOBS, "w", 1.0)).due_in_s == 40
        for each in (clock, other.clock):
            each.advance(39)
        assert (drain(target), len(read(target))) == ([], 1)
        for each in (clock, other.clock):
            each.advance(1)
        assert (drain(target), len(read(target))) == (["a"], 0)

    def test_tokens_and_revisions_go_on_above_those_of_the_source(self, store: Store, other: MemoryStore) -> None:
        for number in range(20):
            write(other, "k", number)
        newest = claim_token(other)
        copy(other, store)
        assert claim_token(store) > newest
        assert grant(store, "lock").token > newest
        assert written_revision(store) > newest

    def test_an_empty_store_is_moved_into_an_empty_one(self, store: Store) -> None:
        store.execute(BeginImport("nothing", Surveyed(0, 0, 0)))
        assert store.execute(EndImport()) is not None

    @pytest.mark.parametrize("is_source", [True, False])
    def test_a_capacity_that_was_set_is_set_in_the_copy(self, store: Store, other: MemoryStore, clock: FakeClock, is_source: bool) -> None:
        source, target = (store, other) if is_source else (other, store)
        source.execute(Resize("gpu", 4))
        acquire(source, "its callers' own", capacity=8, lease_s=5.0)
        assert isinstance(other.clock, FakeClock)
        for each in (clock, other.clock):
            each.advance(5)
        copy(source, target)
        assert acquire(target, "gpu", capacity=1).lease.lease_id == "one"
        assert {one.key: one.capacity for one in target.execute(Leases()).held} == {"gpu": 4}

    @pytest.mark.parametrize("is_source", [True, False])
    def test_a_stale_fence_stays_refused(self, store: Store, other: MemoryStore, is_source: bool) -> None:
        source, target = (store, other) if is_source else (other, store)
        stale, newer = token(source), token(source)
        write(source, "there", 1, fence=newer)
        write(source, "gone", 1, fence=newer)
        write(source, "gone", do="delete")
        copy(source, target)
        for key in ("there", "gone"):
            assert not write(target, key, 2, fence=stale).written
            assert write(target, key, 2, fence=newer).written
            assert write(target, key, 3, fence=token(target)).written, "a holder of the target was shut out"

    @pytest.mark.parametrize("is_source", [True, False])
    def test_a_fence_above_every_token_comes_along_and_can_be_lowered(self, store: Store, other: MemoryStore, is_source: bool) -> None:
        source, target = (store, other) if is_source else (other, store)
        write(source, "a", 1)
        import_fences(source, {"a": BEYOND})
        copy(source, target)
        assert token(target) < 2**52, "one fence used the counter up"
        assert write(target, "a", 2, fence=token(target)).because == "fence"
        assert target.execute(LowerFences(DICT)) == 1
        assert write(target, "a", 3, fence=token(target)).written

    def test_a_watch_that_goes_on_from_the_source_is_told_to_begin_anew(self, store: Store, other: MemoryStore) -> None:
        for number in range(3):
            put(other, str(number))
        newest = other.execute(Changes(f"queue:{JOBS}")).upto
        copy(other, store)
        for index in range(newest + 1):
            for topic in (f"queue:{JOBS}", "dict:never written"):
                with pytest.raises(Compacted):
                    store.execute(Changes(topic, index))
        latest = store.execute(Browse(JOBS)).index
        put(store, "new")
        assert len(store.execute(Changes(f"queue:{JOBS}", latest)).events) == 1

    def test_a_source_with_a_claim_is_not_copied(self, store: Store, other: MemoryStore, clock: FakeClock) -> None:
        put(store, "a")
        claim(store, lease_s=5)
        with pytest.raises(Refused, match="claimed"):
            copy(store, other)
        assert other.execute(Names("queue")).settings == []
        clock.advance(5)
        copy(store, other)
        assert drain(other) == ["a"]

    @pytest.mark.parametrize("dict", [None, DICT])
    def test_a_source_with_a_lease_is_not_copied(self, store: Store, other: MemoryStore, clock: FakeClock, dict: str | None) -> None:
        put(store, "a")
        acquire(store, "leader", dict=dict, lease_s=5)
        with pytest.raises(Refused, match="leader"):
            copy(store, other)
        clock.advance(5)
        copy(store, other)

    def test_a_target_that_is_not_empty_is_refused_and_stays_as_it_was(self, store: Store, other: MemoryStore) -> None:
        put(other, "a")
        put(store, "b", queue="own")
        before = contents(store)
        with pytest.raises(Refused, match="not empty"):
            copy(other, store)
        assert contents(store) == before
        assert drain(other) == ["a"], "the source must not be sealed"

    def test_a_merge_keeps_both(self, store: Store, other: MemoryStore) -> None:
        for number in range(10):
            write(store, "own", number)
        put(store, "mine", queue="mine")
        put(store, "shared 1")
        put(other, "shared 2", key='"k"')
        write(other, "theirs", 1, ttl_s=1_000)
        write(store, "timed", 1, ttl_s=1_000)
        newest = max(claim_token(store), claim_token(other))
        copy(other, store, merge=True)
        assert drain(store) == ["shared 1", "shared 2"]
        assert drain(store, "mine") == ["mine"]
        assert [*read(store)] == ["own", "theirs", "timed"]
        assert claim_token(store) > newest

    def test_a_merge_refuses_what_is_in_both(self, store: Store, other: MemoryStore) -> None:
        put(store, "a")
        put(other, "a")
        with pytest.raises(Refused, match="message a of queue"):
            copy(other, store, merge=True)
        assert len(other.execute(Browse(JOBS)).messages) == 1, "the source must not be sealed"
        move(store, "gone", ids=["a"])
        copy(other, store, merge=True)
        assert drain(store) == ["a"]

    def test_a_merge_refuses_a_key_that_lives_in_both(self, store: Store, other: MemoryStore) -> None:
        put(store, "a", key='"k"')
        put(other, "b", key='"k"')
        with pytest.raises(Refused, match="key"):
            copy(other, store, merge=True)

    def test_a_merge_refuses_an_entry_that_is_in_both(self, store: Store, other: MemoryStore) -> None:
        write(store, "k", 1)
        write(other, "k", 2)
        with pytest.raises(Refused, match="key k of dict"):
            copy(other, store, merge=True)
        assert read(store) == {"k": 1}

    def test_nobody_goes_on_with_the_source(self, store: Store, other: MemoryStore) -> None:
        put(store, "a")
        write(store, "k", 1)
        copy(store, other)
        questions: list[Callable[[], Any]] = [
            lambda: put(store, "b"),
            lambda: put(store, "b", queue="new"),
            lambda: claim(store),
            lambda: claim(store, queue="new"),
            lambda: read(store),
            lambda: write(store, "k", 2),
            lambda: grant(store, "lock"),
            lambda: store.execute(Count(JOBS)),
            lambda: store.execute(Names("queue")),
        ]
        for question in questions:
            with pytest.raises(StoreMoved) as caught:
                question()
            assert caught.value.url == "memory://other"

    def test_a_source_that_is_written_to_meanwhile_is_not_sealed(self, store: Store, other: MemoryStore) -> None:
        put(store, "a")
        with pytest.raises(Refused, match="written to"):
            copy(store, other, progress=lambda _: put(store, "late", queue="another"))
        assert drain(store) == ["a"]
        assert drain(store, "another") == ["late"]

    @pytest.mark.parametrize("is_source", [True, False])
    @pytest.mark.parametrize("pages", [1, 2, 5, 9])
    def test_an_interrupted_copy_goes_on_where_it_was(
        self, store: Store, other: MemoryStore, clock: FakeClock, pages: int, is_source: bool
    ) -> None:
        source, target = (store, other) if is_source else (other, store)
        assert isinstance(other.clock, FakeClock)
        fill(source, clock if is_source else other.clock)
        before = contents(source)
        told: list[CopyProgress] = []

        def interrupt(progress: CopyProgress) -> None:
            told.append(progress)
            if len(told) == pages:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copy(source, target, progress=interrupt, page=2)
        assert copy(source, target, progress=told.append, page=3)
        assert contents(target) == before
        assert [progress.done for progress in told] == sorted({progress.done for progress in told}), "nothing was copied twice"
        assert told[-1].done == told[-1].total

    def test_an_interrupted_copy_of_a_source_that_went_on_is_not_mixed_up(self, store: Store, other: MemoryStore) -> None:
        put(other, "a", "b", "c")

        def interrupt(_: CopyProgress) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copy(other, store, progress=interrupt, page=1)
        put(other, "d")
        with pytest.raises(Refused, match="written to since"):
            copy(other, store)

    def test_a_page_that_comes_twice_is_taken_in_once(self, store: Store) -> None:
        store.execute(BeginImport("there@5", replace(store.execute(Survey()), latest=5)))
        page = Import("there@5", "", "one", "", messages=[Message(JOBS, "a", raw(1), n=1)], entries=[Entry(DICT, "k", raw(1), 3)])
        first = store.execute(page)
        assert store.execute(page) == first
        assert (first.messages, first.entries) == (1, 1)
        with pytest.raises(Refused, match="is at"):
            store.execute(replace(page, place="two"))
        with pytest.raises(Refused, match="no copy of"):
            store.execute(replace(page, source="elsewhere@5"))

    def test_a_copy_that_ended_leaves_nothing_behind(self, store: Store, other: MemoryStore) -> None:
        put(other, "a")
        copy(other, store)
        assert store.execute(EndImport()) is None
        third = MemoryStore()
        put(third, "b")
        copy(third, store, merge=True)
        assert sorted(drain(store)) == ["a", "b"]

    def test_the_room_in_a_bounded_queue_is_known_in_the_target(self, store: Store, other: MemoryStore) -> None:
        other.execute(Configure("queue", JOBS, maxsize=3))
        put(other, "a", "b")
        copy(other, store)
        (settings,) = store.execute(Names("queue")).settings
        assert (settings.maxsize, settings.size) == (3, 2)

    def test_fences_are_listed_page_by_page(self, store: Store) -> None:
        expected, fence = [], token(store)
        for name in ("one", "two", "a" * 150):
            for key in ("a", "b", "c"):
                write(store, key, 1, dict=name, fence=fence)
                expected.append((name, key, fence))
        write(store, "a", do="delete", dict="one")
        found, paged = store.execute(Fences()), store.execute(Fences(limit=2))
        while page := store.execute(Fences((paged[-1].dict, paged[-1].key), 2)):
            paged += page
        assert paged == found
        assert sorted((one.dict, one.key, one.fence) for one in found) == sorted(expected)


def elsewhere() -> MemoryStore:
    """The other store of a move."""
    return MemoryStore(clock=FakeClock(START_US + moment_in(LATER_S)))


def copy(source: Store, target: Store, **options: Any) -> bool:
    """Move everything; answer whether an earlier copy was gone on with."""
    return copy_all(source, target, "memory://source", "memory://other", **options)[2]


def written_revision(store: Store) -> int:
    entry = write(store, "written anew", 0).entry
    assert entry is not None
    return entry.revision


def claim_token(store: Store) -> int:
    """The token of a claim made now, which leaves everything as it was."""
    put(store, "for its token", queue="tokens")
    (message,) = claim(store, queue="tokens")
    settle(store, [message])
    return message.token
