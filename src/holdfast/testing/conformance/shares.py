"""Leases with capacity: how much is granted, who waits in line, who is woken, and under which tokens."""

from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from msgspec import json

from holdfast.commands import Acquire, Acquired, LeaseName, Look, Put, Release, Renew, Resize, Survey, Together
from holdfast.commands.topics import line_topic
from holdfast.errors import LeaseHeld, LeaseLost, LineFull, Refused
from holdfast.ids import new_id
from holdfast.records import Lease
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, acquire, events, grant, is_seen, item, name, release, renew
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import Doing

GPU = "gpu"
MANY = 120
LONG_S = 1_000_000.0


def ask(store: Store, lease_id: str, capacity: int = 2, **options: Any) -> Acquired:
    """Ask for a share; its holder is called as its id is."""
    return acquire(store, GPU, lease_id=lease_id, holder=lease_id, capacity=capacity, **options)


def take(store: Store, lease_id: str, capacity: int = 2, **options: Any) -> Lease:
    """A share that was free, and is ours now."""
    answer = ask(store, lease_id, capacity, **options)
    assert answer.lease.lease_id == lease_id, f"there was room for {lease_id}, and {answer.lease.holder!r} is in the way"
    return answer.lease


def wait_in_line(store: Store, lease_id: str, capacity: int = 2, **options: Any) -> int:
    """A place in the line, which was not the end of it."""
    answer = ask(store, lease_id, capacity, **{"in_line_s": 10.0} | options)
    assert answer.lease.lease_id != lease_id, f"{lease_id} was granted a share instead of a place in line"
    assert answer.place is not None
    return answer.place


def give_up(store: Store, lease_id: str) -> bool:
    return store.execute(Release([LeaseName(None, GPU, lease_id)])).held[0]


def holders(store: Store) -> list[str]:
    """Who has a share, by when it ends."""
    (found,) = store.execute(Look(None, [GPU])).leases
    return [] if found is None else [lease.holder for lease in found.holders]


class ShareConformance(Conformance):
    """Never more than the capacity is granted, each grant is a lease of its own, and who waits in line is served in turn."""

    def test_as_much_as_the_capacity_is_granted_and_no_more(self, store: Store, clock: FakeClock) -> None:
        first, second = take(store, "one", lease_s=30), take(store, "two", lease_s=20)
        assert second.token > first.token, "every grant has its own token"
        answer = ask(store, "three")
        assert answer.lease.lease_id != "three"
        assert [lease.holder for lease in answer.holders] == ["two", "one"], "who has it, by when it ends"
        assert (answer.lease.holder, answer.ends_in_s, answer.place) == ("two", 20, None)
        clock.advance(5)
        assert release(store, first)
        take(store, "three")

    def test_a_heavy_share_takes_as_much_as_it_weighs(self, store: Store) -> None:
        heavy = take(store, "heavy", 4, weight=3)
        take(store, "light", 4)
        assert ask(store, "more", 4).lease.lease_id != "more"
        assert release(store, heavy)
        take(store, "three", 4, weight=3)
        assert ask(store, "more", 4).lease.lease_id != "more"

    def test_asking_again_under_the_id_of_a_share_answers_that_share(self, store: Store, clock: FakeClock) -> None:
        first = take(store, "one", lease_s=30)
        clock.advance(10)
        again = ask(store, "one", lease_s=30)
        assert (again.lease, again.ends_in_s) == (first, 20), "asking again neither renews nor grants anew"
        take(store, "two")

    def test_a_share_ends_by_itself_and_its_place_is_free(self, store: Store, clock: FakeClock) -> None:
        dead = take(store, "dead", 1, lease_s=10)
        clock.advance(9.999999)
        assert ask(store, "next", 1).lease.holder == "dead"
        clock.advance(0.000001)
        assert renew(store, dead) is None
        assert not release(store, dead)
        newer = take(store, "next", 1)
        assert newer.token > dead.token
        assert not release(store, dead), "a stale holder gives nothing back"
        assert holders(store) == ["next"]

    def test_what_has_ended_is_counted_no_more_however_much_it_is(self, store: Store, clock: FakeClock) -> None:
        for number in range(MANY):
            take(store, str(number), MANY, lease_s=10)
        clock.advance(10)
        for number in range(MANY):
            take(store, f"again {number}", MANY, lease_s=10)
        assert ask(store, "too many", MANY).lease.lease_id != "too many"

    def test_shares_are_renewed_one_by_one(self, store: Store, clock: FakeClock) -> None:
        kept, left = take(store, "kept", lease_s=10), take(store, "left", lease_s=10)
        clock.advance(9)
        renewed = renew(store, kept, 30)
        assert renewed is not None
        assert (renewed.token, renewed.until) == (kept.token, clock.now_us() + 30_000_000)
        clock.advance(1)
        assert renew(store, left) is None
        assert holders(store) == ["kept"]
        take(store, "new")

    def test_a_share_without_an_end_does_not_end(self, store: Store, clock: FakeClock) -> None:
        answer = ask(store, "one", 1, lease_s=None)
        assert answer.ends_in_s is None
        clock.advance(10 * 365 * 86_400)
        assert ask(store, "two", 1).ends_in_s is None
        assert release(store, answer.lease)

    def test_several_leases_and_shares_are_renewed_and_given_back_in_one_step(self, store: Store) -> None:
        plain, one, two = grant(store, "plain", lease_id="p"), take(store, "one"), take(store, "two")
        names = [name(one), name(plain), name(two), LeaseName(None, GPU, "nobody")]
        assert [lease is not None for lease in store.execute(Renew(names, 60)).leases] == [True, True, True, False]
        assert store.execute(Release(names)).held == [True, True, True, False]
        with pytest.raises(LeaseLost):
            store.execute(Release([name(one)], all_or_none=True))
        grant(store, GPU, lease_id="a plain lease again")

    def test_whoever_came_first_is_served_first(self, store: Store) -> None:
        first = take(store, "holder", 1)
        assert [wait_in_line(store, lease_id, 1) for lease_id in "abc"] == [1, 2, 3]
        assert release(store, first)
        assert wait_in_line(store, "b", 1) == 2, "somebody else is before it"
        assert ask(store, "new", 1).lease.lease_id != "new", "nor does anybody overtake the line"
        granted = take(store, "a", 1, in_line_s=10)
        assert wait_in_line(store, "b", 1) == 1
        assert release(store, granted)
        take(store, "b", 1, in_line_s=10)

    def test_a_place_lapses_when_nobody_asks_again_and_delays_no_longer(self, store: Store, clock: FakeClock) -> None:
        first = take(store, "holder", 1, lease_s=60)
        wait_in_line(store, "dead", 1, in_line_s=10)
        clock.advance(5)
        wait_in_line(store, "alive", 1, in_line_s=10)
        assert release(store, first)
        answer = ask(store, "alive", 1, in_line_s=10)
        assert (answer.lease.holder, answer.ends_in_s) == ("dead", 5), "nobody holds it, and the first in line has five seconds left"
        clock.advance(5)
        take(store, "alive", 1, in_line_s=10)

    def test_asking_again_keeps_the_place(self, store: Store, clock: FakeClock) -> None:
        first = take(store, "holder", 1, lease_s=600)
        for _ in range(5):
            assert (wait_in_line(store, "a", 1), wait_in_line(store, "b", 1)) == (1, 2)
            clock.advance(9)
        assert release(store, first)
        assert wait_in_line(store, "b", 1) == 2

    def test_a_writer_waits_for_the_readers_inside_and_for_no_later_ones(self, store: Store) -> None:
        readers = [take(store, f"reader {number}", 1000) for number in range(3)]
        assert wait_in_line(store, "writer", 1000, weight=1000) == 1
        assert wait_in_line(store, "late reader", 1000) == 2
        for reader in readers:
            assert ask(store, "writer", 1000, weight=1000, in_line_s=10).lease.lease_id != "writer"
            assert release(store, reader)
        writer = take(store, "writer", 1000, weight=1000, in_line_s=10)
        assert wait_in_line(store, "late reader", 1000) == 1
        assert release(store, writer)
        take(store, "late reader", 1000, in_line_s=10)

    def test_those_in_line_who_fit_together_are_served_in_any_order(self, store: Store) -> None:
        first = take(store, "holder", 3, weight=3)
        for lease_id, weight in (("a", 1), ("b", 2), ("c", 1)):
            wait_in_line(store, lease_id, 3, weight=weight)
        assert release(store, first)
        take(store, "b", 3, weight=2, in_line_s=10)
        assert ask(store, "c", 3, in_line_s=10).lease.lease_id != "c", "a is before it, and takes what is left"
        take(store, "a", 3, in_line_s=10)

    def test_giving_back_wakes_those_who_fit(self, store: Store) -> None:
        first = take(store, "holder", 3, weight=3)
        for lease_id, weight in (("a", 1), ("b", 2), ("c", 1)):
            wait_in_line(store, lease_id, 3, weight=weight)
        with ExitStack() as stack:
            marks = {lease_id: stack.enter_context(store.mark(line_topic(GPU, lease_id))) for lease_id in "abc"}
            assert release(store, first)
            for lease_id in "ab":
                Doing(lambda: store.wait(marks[lease_id], LONG_S)).result(f"{lease_id}, who waited in line")  # noqa: B023 - at once
            take(store, "b", 3, weight=2, in_line_s=10)
            granted = take(store, "a", 3, in_line_s=10)
            assert release(store, granted)
            Doing(lambda: store.wait(marks["c"], LONG_S)).result("c, who waited in line")
            take(store, "c", 3, in_line_s=10)

    def test_whoever_gives_up_a_place_is_waited_for_no_more(self, store: Store) -> None:
        first = take(store, "holder", 1)
        wait_in_line(store, "a", 1)
        wait_in_line(store, "b", 1)
        assert release(store, first)
        assert not give_up(store, "a"), "a place in line is no lease"
        take(store, "b", 1, in_line_s=10)

    def test_a_place_in_line_can_be_neither_renewed_nor_given_back_as_a_lease(self, store: Store) -> None:
        take(store, "holder", 1)
        wait_in_line(store, "a", 1)
        own = LeaseName(None, GPU, "a")
        assert store.execute(Renew([own], 30)).leases == [None]
        with pytest.raises(LeaseLost):
            store.execute(Release([own], all_or_none=True))
        assert wait_in_line(store, "a", 1) == 1

    def test_a_line_that_is_full_takes_nobody(self, store: Store, clock: FakeClock) -> None:
        take(store, "holder", 1, lease_s=60)
        for lease_id in "ab":
            wait_in_line(store, lease_id, 1, max_waiters=2)
        with pytest.raises(LineFull) as refused:
            ask(store, "c", 1, in_line_s=10, max_waiters=2)
        assert [lease.holder for lease in refused.value.holders] == ["holder"]
        assert refused.value.expires_in_s == 10, "when the first of all in the way ends"
        wait_in_line(store, "b", 1, max_waiters=2)
        clock.advance(10)
        assert wait_in_line(store, "c", 1, max_waiters=2) == 1

    def test_a_name_is_used_in_one_way_at_a_time(self, store: Store, clock: FakeClock) -> None:
        shared = take(store, "one", lease_s=10)
        with pytest.raises(Refused, match="has capacity 2, and was asked for as a plain lease"):
            acquire(store, GPU, lease_id="plain")
        with pytest.raises(Refused, match="has capacity 2, not 3"):
            ask(store, "other", 3)
        assert release(store, shared)
        plain = grant(store, GPU, lease_id="plain", lease_s=10)
        with pytest.raises(Refused, match="as a plain lease, and was asked for with a capacity"):
            ask(store, "one")
        clock.advance(10)
        take(store, "other", 3, lease_s=10)
        clock.advance(10)
        assert grant(store, GPU, lease_id="again").token > plain.token

    def test_resizing_sets_the_capacity_whatever_is_asked_for(self, store: Store) -> None:
        held = [take(store, lease_id) for lease_id in "ab"]
        assert store.execute(Resize(GPU, 3)).used == 2
        take(store, "c")
        resized = store.execute(Resize(GPU, 1))
        assert (resized.capacity, resized.used) == (1, 3), "nothing is taken from anybody"
        assert release(store, held[0])
        assert release(store, held[1])
        assert ask(store, "d").lease.lease_id != "d"
        give_up(store, "c")
        last = take(store, "d", 7)
        with pytest.raises(Refused, match="resized to capacity 1, less than the weight 2"):
            ask(store, "heavy", 7, weight=2)
        assert release(store, last)
        store.execute(Resize(GPU, None))
        take(store, "e", 7, weight=7)

    def test_a_step_takes_all_of_its_leases_or_none(self, store: Store) -> None:
        take(store, "one", 1)
        with pytest.raises(LeaseHeld) as refused:
            store.execute(Together([Put(JOBS, [item("a")]), Acquire(None, GPU, "me", "two", 30.0, capacity=1, in_line_s=10.0)]))
        assert [lease.holder for lease in refused.value.holders] == ["one"]
        give_up(store, "one")
        (_, granted) = store.execute(Together([Put(JOBS, [item("a")]), Acquire(None, GPU, "me", "two", 30.0, capacity=1)]))
        assert granted.lease.lease_id == "two"

    def test_a_repeated_command_takes_no_second_share(self, store: Store) -> None:
        command = Acquire(None, GPU, "me", "one", 30.0, capacity=1, id=new_id())
        granted = store.execute(command)
        assert store.execute(command) == granted
        assert release(store, granted.lease)
        assert store.execute(command).lease.lease_id == "one"
        assert holders(store) == [], "what was given back is not taken again"

    def test_the_log_tells_of_every_grant_and_how_it_ended(self, store: Store, clock: FakeClock) -> None:
        first = take(store, "one", 3, lease_s=10)
        take(store, "two", 3, weight=2, lease_s=5)
        assert release(store, first)
        clock.advance(5)
        take(store, "three", 3, weight=3)
        found = [(event.event, json.decode(event.data)) for event in events(store, f"lease::{GPU}")]
        assert found == [
            ("acquired", {"key": GPU, "holder": "one", "weight": 1}),
            ("acquired", {"key": GPU, "holder": "two", "weight": 2}),
            ("released", {"key": GPU, "holder": "one", "weight": 1}),
            ("expired", {"key": GPU, "holder": "two", "weight": 2}),
            ("acquired", {"key": GPU, "holder": "three", "weight": 3}),
        ]

    def test_looking_shows_all_who_hold_a_share(self, store: Store, clock: FakeClock) -> None:
        late, soon = take(store, "late", lease_s=30), take(store, "soon", lease_s=10)
        wait_in_line(store, "waiter")
        (found,) = store.execute(Look(None, [GPU])).leases
        assert found is not None
        assert is_seen(found.lease, soon)
        assert found.ends_in_s == 10
        assert [is_seen(*pair) for pair in zip(found.holders, (soon, late), strict=True)] == [True, True]
        clock.advance(30)
        assert store.execute(Look(None, [GPU])).leases == [None]

    def test_threads_together_never_hold_more_than_the_capacity(self, store: Store) -> None:
        def work(worker: int) -> None:
            for turn in range(4):
                lease_id, weight = f"{worker} {turn}", 1 + worker % 2
                while ask(store, lease_id, 3, weight=weight, in_line_s=10.0).lease.lease_id != lease_id:
                    pass
                assert give_up(store, lease_id)

        workers = [Doing(partial(work, worker)) for worker in range(4)]
        for worker in workers:
            worker.result("a worker that takes turns with others")
        used = [0]
        for event in events(store, f"lease::{GPU}"):
            weight = json.decode(event.data)["weight"]
            used.append(used[-1] + (weight if event.event == "acquired" else -weight))
        assert len(used) == 1 + 2 * 16
        assert max(used) <= 3, "more was held at once than the capacity, by the log"
        assert used[-1] == 0
        assert holders(store) == []
        grant(store, GPU, lease_id="nothing is left behind")

    def test_shares_are_leases_to_a_survey(self, store: Store) -> None:
        take(store, "one")
        wait_in_line(store, "two", 2, weight=2)
        assert [lease.holder for lease in store.execute(Survey()).held] == ["one"]
        give_up(store, "one")
        assert store.execute(Survey()).held == []
