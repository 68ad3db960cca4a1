"""Waiting without polling: whatever makes asking again worth it wakes who can use it."""

import threading
from collections.abc import Callable

import pytest

from holdfast.commands import Claim, Configure
from holdfast.commands.topics import dict_topic, key_topic, lease_topic, queue_topic, room_topic, watch_topic
from holdfast.errors import Closed
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, JOBS, claim, drain, extend, grant, ids, move, put, release, settle, write
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import Doing, all_asleep

LONG_S = 1_000_000.0
KEY = '"k"'


class WaitingConformance(Conformance):
    """A mark comes before the question, so that no wake-up is lost; time is the store's clock."""

    def test_a_wait_from_before_a_change_ends_at_once(self, store: Store) -> None:
        with store.mark(queue_topic(JOBS)) as mark:
            put(store, "a")
            Doing(lambda: store.wait(mark, LONG_S)).result("a wait whose mark was taken before a put")

    def test_a_put_wakes_who_waits(self, store: Store) -> None:
        waiter = waiting_claim(store)
        put(store, "a")
        assert ids(waiter.result("a claim that waited for a put")) == ["a"]

    def test_a_put_of_several_wakes_as_many(self, store: Store) -> None:
        waiters = [waiting_claim(store) for _ in range(3)]
        put(store, "a", "b", "c")
        assert sorted(ids(message for waiter in waiters for message in waiter.result())) == ["a", "b", "c"]

    def test_a_put_wakes_what_can_use_it_and_not_every_waiter(self, store: Store) -> None:
        empty: list[int] = []
        awake: list[int] = []

        def claim_and_count() -> None:
            with store.mark(queue_topic(JOBS)) as mark:
                while not claim(store):
                    empty.append(1)
                    store.wait(mark, LONG_S)
                    awake.append(1)
                mark.used()

        wait_for(store, queue_topic(JOBS), timeout_s=0.01)  # Over a wire the first wait only says that somebody listens.
        waiters = [Doing(claim_and_count) for _ in range(8)]
        # Who still waits for its connection sleeps, too, but for no message.
        all_asleep(*waiters)
        while len(empty) < 8:
            all_asleep(*waiters)
        before = len(awake)
        put(store, "a")
        all_asleep(*waiters)
        woken = len(awake) - before
        assert 1 <= woken < 8, f"one message woke {woken} of 8 who waited"

    def test_a_released_message_wakes_who_waits(self, store: Store) -> None:
        put(store, "a")
        held = claim(store)
        waiter = waiting_claim(store)
        settle(store, held, to="ready")
        assert ids(waiter.result("a claim that waited for a release")) == ["a"]

    def test_a_claim_that_was_ended_wakes_who_waits(self, store: Store) -> None:
        put(store, "a")
        held = claim(store)
        waiter = waiting_claim(store)
        extend(store, held, 0)
        assert ids(waiter.result("a claim that waited for another to be given up")) == ["a"]

    def test_a_copy_that_becomes_claimable_wakes_who_waits(self, store: Store) -> None:
        put(store, "a", key=KEY)
        held = claim(store)
        put(store, "copy", key=KEY)
        waiter = waiting_claim(store)
        settle(store, held)
        assert ids(waiter.result("a claim that waited for a buffered copy")) == ["copy"]

    def test_a_redriven_message_wakes_who_waits(self, store: Store) -> None:
        put(store, "a")
        settle(store, claim(store), to="dead")
        waiter = waiting_claim(store)
        move(store, "ready")
        assert ids(waiter.result("a claim that waited for a redrive")) == ["a"]

    def test_a_dead_letter_wakes_who_waits_for_it(self, store: Store) -> None:
        put(store, "a", dead_letter="graves")
        held = claim(store)
        waiter = waiting_claim(store, queue="graves")
        settle(store, held, to="dead")
        assert ids(waiter.result("a claim that waited for a dead letter")) == ["a"]

    def test_a_resumed_queue_wakes_who_waits(self, store: Store) -> None:
        put(store, "a")
        store.execute(Configure("queue", JOBS, paused=True))
        waiter = waiting_claim(store)
        store.execute(Configure("queue", JOBS, paused=False))
        assert ids(waiter.result("a claim that waited for a paused queue")) == ["a"]

    def test_a_put_wakes_who_waits_for_its_key(self, store: Store) -> None:
        waiter = waiting_claim(store, key=KEY)
        put(store, "other", key='"other"')
        put(store, "a", key=KEY)
        assert ids(waiter.result("a claim that waited for a key")) == ["a"]

    @pytest.mark.parametrize("taking", ["claim", "take", "remove"])
    def test_room_wakes_a_blocked_producer(self, store: Store, taking: str) -> None:
        store.execute(Configure("queue", JOBS, maxsize=1))
        put(store, "a")
        waiter = Doing(lambda: wait_for(store, room_topic(JOBS)))
        all_asleep(waiter)
        act: dict[str, Callable[[], object]] = {
            "claim": lambda: claim(store),
            "take": lambda: drain(store),
            "remove": lambda: move(store, "gone", ids=["a"]),
        }
        act[taking]()
        waiter.result("a producer that waited for room")

    def test_a_lease_given_back_wakes_who_waits_for_it(self, store: Store) -> None:
        for name in (None, DICT):
            lease = grant(store, "lock", dict=name)
            waiter = Doing(lambda name=name: wait_for(store, lease_topic(name, "lock")))  # type: ignore[misc]
            all_asleep(waiter)
            release(store, lease)
            waiter.result("a wait for a lease")

    def test_an_event_wakes_who_watches(self, store: Store) -> None:
        acts: list[tuple[str, Callable[[], object]]] = [
            (queue_topic(JOBS), lambda: put(store, "a")),
            (queue_topic(JOBS), lambda: claim(store)),
            (dict_topic(DICT), lambda: write(store, "a", 1)),
            (dict_topic(DICT), lambda: write(store, "a", do="delete")),
            ("lease::lock", lambda: grant(store, "lock")),
        ]
        for topic, act in acts:
            waiter = Doing(lambda topic=topic: wait_for(store, watch_topic(topic)))  # type: ignore[misc]
            all_asleep(waiter)
            act()
            waiter.result(f"a watch of {topic}")

    def test_a_message_that_becomes_due_wakes_who_waits(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", delay_s=60)
        waiter = waiting_claim(store)
        assert not waiter.is_over
        clock.advance(60)
        assert ids(waiter.result("a claim that waited for a delayed message")) == ["a"]

    def test_a_lease_that_ends_wakes_who_waits(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        claim(store, lease_s=60)
        waiter = waiting_claim(store)
        clock.advance(60)
        assert ids(waiter.result("a claim that waited for a lease to end")) == ["a"]

    def test_several_that_become_due_at_one_moment_reach_as_many(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", "b", "c", delay_s=60)
        waiters = [waiting_claim(store) for _ in range(3)]
        clock.advance(60)
        assert sorted(ids(message for waiter in waiters for message in waiter.result())) == ["a", "b", "c"]

    def test_something_due_earlier_than_expected_is_not_slept_through(self, store: Store, clock: FakeClock) -> None:
        put(store, "late", delay_s=600)
        waiter = waiting_claim(store)
        put(store, "early", delay_s=60)
        waiter.until_asleep()
        clock.advance(60)
        assert ids(waiter.result("a claim that waited for the earlier of two")) == ["early"]

    def test_a_wait_ends_at_its_time_out(self, store: Store) -> None:
        Doing(lambda: wait_for(store, queue_topic(JOBS), timeout_s=0.01)).result("a wait of 0.01 s")

    def test_a_due_moment_ends_a_wait_no_earlier(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", delay_s=60)
        waiter = waiting_claim(store)
        clock.advance(59)
        waiter.until_asleep()
        assert not waiter.is_over, "a message was handed out before it was due"
        clock.advance(1)
        assert ids(waiter.result("a claim that waited for a delayed message")) == ["a"]

    def test_nothing_wakes_who_waits_while_nothing_happens(self, store: Store) -> None:
        ends: list[str] = []
        waiter = Doing(lambda: wait_until_closed(store, queue_topic(JOBS), ends))
        # A store over a wire lets who waits ask again once it listens, which may be late: so the first rounds may be disturbed, not all.
        assert any(not disturbed(store, waiter, ends, str(number)) for number in range(10)), (
            "waits ended again and again though nothing happened in their queue"
        )

    def test_a_wake_up_for_a_waiter_that_was_just_cancelled_is_passed_on(self, store: Store) -> None:
        for number in range(3):
            is_first = threading.Lock()
            waiters = [Doing(lambda lock=is_first: claim_unless_first(store, lock)) for _ in range(2)]  # type: ignore[misc]
            all_asleep(*waiters)
            put(store, str(number))
            found = [message.id for waiter in waiters for message in waiter.result("a waiter behind one that was cancelled")]
            assert found == [str(number)]

    def test_closing_ends_every_wait(self, store: Store) -> None:
        waiters = [Doing(lambda topic=topic: wait_until_closed(store, topic, [])) for topic in (queue_topic(JOBS), lease_topic(None, "x"))]  # type: ignore[misc]
        all_asleep(*waiters)
        store.close()
        for waiter in waiters:
            with pytest.raises(Closed):
                waiter.result("a wait on a store that was closed")

    def test_a_closed_store_answers_nothing(self, store: Store) -> None:
        put(store, "a")
        store.close()
        store.close()
        with pytest.raises(Closed):
            store.execute(Claim(JOBS))
        with pytest.raises(Closed):
            store.wait(store.mark(queue_topic(JOBS)), 1.0)


def wait_for(store: Store, topic: str, timeout_s: float = LONG_S) -> None:
    with store.mark(topic) as mark:
        store.wait(mark, timeout_s)


def wait_until_closed(store: Store, topic: str, ends: list[str]) -> None:
    """Wait again and again, noting each wait that ended."""
    with store.mark(topic) as mark:
        while True:
            store.wait(mark, LONG_S)
            ends.append(topic)


def disturbed(store: Store, waiter: Doing[None], ends: list[str], name: str) -> bool:
    """Whether a wait ended while things happened elsewhere."""
    all_asleep(waiter)
    before = len(ends)
    for each in "abc":
        put(store, name + each, queue="others")
        write(store, each, name)
        all_asleep(waiter)
    return len(ends) > before


def waiting_claim(store: Store, queue: str = JOBS, key: str | None = None) -> "WaitingClaim":
    """A claim in another thread, that is now waiting for something to become due."""
    waiter = WaitingClaim(store, queue, key)
    waiter.until_asleep()
    return waiter


class WaitingClaim(Doing[list[Message]]):
    """A claim of one message in another thread, waiting as long as it takes."""

    def __init__(self, store: Store, queue: str, key: str | None = None) -> None:
        self._steps: list[str] = []
        super().__init__(lambda: self._claim(store, queue, key))

    def _claim(self, store: Store, queue: str, key: str | None) -> list[Message]:
        with store.mark(queue_topic(queue) if key is None else key_topic(queue, key)) as mark:
            for _ in range(1_000):
                self._steps.append("ask")
                answer = store.execute(Claim(queue, "waiter", 3_600.0, key=key))
                if answer.messages:
                    mark.used()
                    return answer.messages
                self._steps.append("wait")
                store.wait(mark, LONG_S, answer.due_in_s)
        raise AssertionError("waits end again and again, and nothing is there")

    def until_asleep(self) -> None:
        """Return when it waits for a change: not while it asks, since an answer on its way is of the moment before."""
        before = -1
        while not self.is_over and (before != len(self._steps) or self._steps[-1:] != ["wait"]):
            before = len(self._steps)
            all_asleep(self)


def claim_unless_first(store: Store, is_first: threading.Lock) -> list[Message]:
    """Claim one message, waiting; whoever is woken first gives up instead, as a cancelled caller does."""
    with store.mark(queue_topic(JOBS)) as mark:
        for _ in range(1_000):
            store.wait(mark, LONG_S)
            if is_first.acquire(blocking=False):
                return []
            answer = store.execute(Claim(JOBS, "waiter", 3_600.0))
            if answer.messages:
                mark.used()
                return answer.messages
    raise AssertionError("waits end again and again, and nothing is there")
