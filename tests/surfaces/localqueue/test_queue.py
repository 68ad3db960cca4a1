"""A queue as localqueue documents it, on every embedded store."""

import queue as standard
from typing import Any

import pytest

from holdfast.records import HISTORY
from holdfast.surfaces.localqueue import (
    AtMostOnceDelivery,
    CallbackDispatcher,
    CallbackNotification,
    EffectivelyOnceDelivery,
    MemoryQueueStore,
    NoDeduplication,
    PersistentQueue,
    PriorityOrdering,
    PublishSubscribeRouting,
    QueueMessage,
    RejectingBackpressure,
    StaticFanoutSubscriptions,
    URLQueueStore,
    subscriber_queue_name,
)
from holdfast.testing.clock import FakeClock


@pytest.fixture
def jobs(store: URLQueueStore) -> PersistentQueue[Any]:
    return PersistentQueue("jobs", store=store)


class TestPuttingAndGetting:
    def test_a_put_answers_the_message_and_a_get_its_value(self, jobs: PersistentQueue[Any]) -> None:
        message = jobs.put({"a": 1}, delay=0.0)

        assert (message.value, message.queue, message.state, message.attempts, message.token) == ({"a": 1}, "jobs", "ready", 0, None)
        assert message.available_at == message.created_at
        assert jobs.get() == {"a": 1}

    def test_a_put_answers_what_inspect_shows(self, jobs: PersistentQueue[Any]) -> None:
        for message in (jobs.put("now"), jobs.put("later", delay=60.0, dedupe_key="k")):
            assert jobs.inspect(message.id) == message

    def test_it_is_shown_the_same_by_every_object_of_the_process(self) -> None:
        """By the clocks of this machine, whose difference is never the same twice."""
        store = MemoryQueueStore()
        one, other = PersistentQueue[int]("jobs", store=store), PersistentQueue[int]("jobs", store=store.client)
        messages = [one.put(number) for number in range(200)]
        assert [other.inspect(message.id) for message in messages] == messages

    def test_a_delayed_message_is_not_due_before(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        message = jobs.put("later", delay=10.0)

        assert message.available_at == message.created_at + 10.0
        assert jobs.empty()
        with pytest.raises(standard.Empty):
            jobs.get_nowait()
        clock.advance(10.0)
        assert jobs.get_nowait() == "later"

    def test_an_empty_queue_raises_when_it_may_not_or_no_longer_wait(self, jobs: PersistentQueue[Any]) -> None:
        with pytest.raises(standard.Empty):
            jobs.get(block=False)
        with pytest.raises(standard.Empty):
            jobs.get_message(timeout=0.01)

    def test_a_leased_message_shows_who_has_it_and_until_when(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        jobs.put("work")

        message = jobs.get_message(leased_by="w1")

        assert (message.state, message.attempts, message.leased_by) == ("inflight", 1, "w1")
        assert message.leased_until == clock.wall_us() / 1_000_000 + 30.0
        assert message.attempt_history == [{"type": "leased", "at": clock.wall_us() / 1_000_000, "attempt": 1, "leased_by": "w1"}]
        assert jobs.inspect(message.id) == without_token(message)

    def test_nobody_is_named_where_nobody_was_given(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("work")
        assert jobs.get_message().leased_by is None
        assert jobs.stats().by_worker_id == {}

    @pytest.mark.parametrize("value", [{"a": [1, None, "é"]}, (1, 2), b"bytes", 2**70, {"nested": ({"x": b"y"},)}])
    def test_a_value_comes_back_equal(self, jobs: PersistentQueue[Any], value: object) -> None:
        jobs.put(value)
        assert jobs.get() == value

    @pytest.mark.parametrize("value", [object(), float("nan"), {1: 2, "a": object()}])
    def test_a_value_that_would_not_is_refused(self, jobs: PersistentQueue[Any], value: object) -> None:
        with pytest.raises(ValueError, match="value") as refused:
            jobs.put(value)
        assert isinstance(refused.value, TypeError)
        assert jobs.stats().total == 0

    def test_delivered_at_most_once_a_message_is_gone_when_it_is_handed_out(self, store: URLQueueStore) -> None:
        jobs = PersistentQueue[str]("jobs", store=store, delivery_policy=AtMostOnceDelivery())
        jobs.put("once")

        message = jobs.get_message()

        assert message.value == "once"
        assert jobs.stats().total == 0
        assert not jobs.ack(message)
        jobs.put("again")
        assert jobs.get() == "again"
        with pytest.raises(ValueError, match="too many times"):
            jobs.task_done()


class TestSettling:
    def test_an_acknowledged_message_is_gone(self, jobs: PersistentQueue[Any]) -> None:
        message = jobs.put("work")
        assert jobs.ack(jobs.get_message())
        assert jobs.inspect(message.id) is None
        assert jobs.stats().total == 0

    def test_a_released_message_goes_to_the_back_with_its_error(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        jobs.put("first")
        jobs.put("second")
        message = jobs.get_message()
        clock.advance(1.0)

        assert jobs.release(message, error=ValueError("boom"))

        assert [jobs.get_message().value, (again := jobs.get_message()).value] == ["second", "first"]
        assert again.last_error == {"type": "ValueError", "module": "builtins", "message": "boom"}
        assert again.failed_at == clock.wall_us() / 1_000_000
        assert [one["type"] for one in again.attempt_history] == ["leased", "released", "leased"]
        assert again.attempt_history[1]["last_error"] == again.last_error

    def test_a_release_can_wait(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        jobs.put("work")
        assert jobs.release(jobs.get_message(), delay=5.0)
        assert (jobs.stats().ready, jobs.stats().delayed) == (0, 1)
        clock.advance(5.0)
        assert jobs.get() == "work"

    def test_an_expired_message_goes_to_the_back(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        for value in ("first", "second"):
            jobs.put(value)
        jobs.get_message()
        clock.advance(30.0)

        assert [jobs.get_message().value, (again := jobs.get_message()).value] == ["second", "first"]
        assert [one["type"] for one in again.attempt_history] == ["leased", "lease_expired", "leased"]
        assert again.last_error is None

    def test_a_dead_letter_is_kept_with_its_error_and_can_be_requeued(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        jobs.put("work")
        assert jobs.dead_letter(jobs.get_message(), error="no use")

        (dead,) = jobs.dead_letters()
        assert (dead.state, dead.attempts, dead.token) == ("dead", 1, None)
        assert dead.last_error == {"type": None, "module": None, "message": "no use"}
        assert [one["type"] for one in dead.attempt_history] == ["leased", "dead_lettered"]
        assert jobs.requeue_dead(dead, delay=1.0)
        assert not jobs.requeue_dead(dead)
        clock.advance(1.0)
        assert (again := jobs.get_message()).attempts == 2
        assert again.id == dead.id

    def test_a_dead_letter_whose_key_was_put_again_stays_dead_and_the_new_message_lives(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("old", dedupe_key="k")
        jobs.dead_letter(jobs.get_message())
        jobs.put("new", dedupe_key="k")
        (dead,) = jobs.dead_letters()
        assert not jobs.requeue_dead(dead)
        jobs.release(jobs.get_message())
        assert jobs.get_message().value == "new"

    def test_a_message_from_a_look_acts_only_while_nobody_holds_it(self, jobs: PersistentQueue[Any]) -> None:
        put = jobs.put("work")
        held = jobs.get_message()

        assert [jobs.ack(put), jobs.release(put), jobs.dead_letter(put)] == [False] * 3
        assert jobs.release(held)
        assert jobs.dead_letter(put, error="by hand")
        assert jobs.release(put, error="given another chance")
        found = jobs.inspect(put.id)
        assert found is not None
        assert found.last_error is not None
        assert found.state == "ready"
        assert jobs.ack(put)
        assert not jobs.ack(put)

    def test_an_unknown_message_is_not_acted_on(self, jobs: PersistentQueue[Any]) -> None:
        unknown = QueueMessage(id="unknown", value=None, queue="jobs")
        assert not any([jobs.ack(unknown), jobs.release(unknown), jobs.dead_letter(unknown), jobs.requeue_dead(unknown)])
        assert jobs.inspect("unknown") is None

    def test_an_error_of_any_length_is_kept_in_parts(self, jobs: PersistentQueue[Any]) -> None:
        class CommandError(Exception):
            command = ("run", "it")
            exit_code = 3
            stdout = "\x00" * 5_000
            stderr = "x" * 5_000

        jobs.put("work")
        jobs.release(jobs.get_message(), error=CommandError("\u2603" * 10_000))

        error = jobs.get_message().last_error
        assert error is not None
        assert (error["type"], error["exit_code"], error["message"][:3]) == ("CommandError", 3, "\u2603" * 3)
        assert error["stderr"].startswith("x")

    def test_the_number_of_attempts_stays_right_when_old_ones_are_forgotten(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("work")
        for _ in range(HISTORY + 5):
            jobs.release(jobs.get_message())

        history = jobs.get_message().attempt_history
        assert history[-1]["attempt"] == HISTORY + 6
        assert history[0] == {**history[0], "type": "leased", "attempt": 6}
        assert len(history) == 2 * HISTORY + 1


class TestStandardQueue:
    def test_task_done_acknowledges_the_oldest_and_join_waits_for_all(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("a")
        jobs.put("b")
        jobs.get()
        jobs.get()

        jobs.task_done()
        assert [jobs.stats().inflight, jobs.stats().total] == [1, 1]
        jobs.task_done()
        jobs.join()
        assert jobs.stats().total == 0
        with pytest.raises(ValueError, match="too many times"):
            jobs.task_done()

    def test_a_full_queue_refuses_who_will_not_wait(self, store: URLQueueStore) -> None:
        jobs = PersistentQueue[int]("jobs", store=store, maxsize=1)
        jobs.put(1)

        assert jobs.full()
        with pytest.raises(standard.Full):
            jobs.put_nowait(2)
        with pytest.raises(standard.Full):
            jobs.put(2, timeout=0.01)
        jobs.ack(jobs.get_message())
        assert not jobs.full()
        jobs.put(2, timeout=0)

    def test_a_rejecting_queue_never_waits(self, store: URLQueueStore) -> None:
        jobs = PersistentQueue[int]("jobs", store=store, backpressure=RejectingBackpressure(1))
        jobs.put(1)
        with pytest.raises(standard.Full):
            jobs.put(2, block=True)

    def test_a_strategy_of_ones_own_decides(self, store: URLQueueStore) -> None:
        class Even:
            maxsize = 0
            overflow = "block"

            def is_full(self, *, qsize: int) -> bool:
                return qsize == 2

            def as_dict(self) -> dict[str, object]:
                return {}

        jobs = PersistentQueue[int]("jobs", store=store, backpressure=Even())  # type: ignore[arg-type] # plain attributes will do
        jobs.put(1)
        jobs.put(2)
        assert jobs.full()
        with pytest.raises(standard.Full):
            jobs.put(3, timeout=0.01)
        jobs.get()
        jobs.put(3)

    def test_sizes(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        for value in range(4):
            jobs.put(value)
        jobs.put("later", delay=60.0)
        jobs.get_message(leased_by="w1")
        jobs.dead_letter(jobs.get_message(leased_by="w1"))
        clock.advance(2.0)
        jobs.record_worker_heartbeat("w2")

        stats = jobs.stats()

        assert (stats.ready, stats.delayed, stats.inflight, stats.dead, stats.total) == (2, 1, 1, 1, 5)
        assert (stats.by_worker_id, stats.leases_by_worker_id) == ({"w1": 1}, {"w1": 2})
        assert list(stats.last_seen_by_worker_id) == ["w2"]
        assert (stats.oldest_ready_age_seconds, stats.oldest_inflight_age_seconds, stats.average_inflight_age_seconds) == (2.0, 2.0, 2.0)
        assert stats.as_dict()["ready"] == 2
        assert (jobs.qsize(), jobs.empty()) == (2, False)
        assert jobs.purge() == 5
        assert jobs.stats().total == 0

    def test_dead_letters_are_pruned_by_age_since_their_burial(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        for value in ("old", "new"):
            jobs.put(value)
            clock.advance(10.0)
            jobs.dead_letter(jobs.get_message())

        assert [one.value for one in jobs.dead_letters()] == ["old", "new"]
        assert [one.value for one in jobs.dead_letters(limit=1)] == ["old"]
        assert jobs.count_dead_letters_older_than(older_than=5.0) == 1
        assert jobs.prune_dead_letters(older_than=5.0) == 1
        assert [one.value for one in jobs.dead_letters()] == ["new"]
        assert jobs.dead_letters(limit=0) == []


class TestKeysAndPriorities:
    def test_a_known_key_gives_the_stored_message_whether_it_waits_or_is_leased(self, jobs: PersistentQueue[Any]) -> None:
        first = jobs.put("old", dedupe_key="k")

        assert jobs.put("new", dedupe_key="k").id == first.id
        leased = jobs.get_message()
        assert leased.value == "old"
        again = jobs.put("newer", dedupe_key="k")
        assert (again.id, again.value, again.state, again.token) == (first.id, "old", "inflight", None)
        jobs.ack(leased)
        assert jobs.put("fresh", dedupe_key="k").id != first.id

    def test_the_higher_priority_wins_even_if_it_came_later(self, store: URLQueueStore, clock: FakeClock) -> None:
        jobs = PersistentQueue[str]("jobs", store=store, ordering_policy=PriorityOrdering())
        for value, priority in (("low", 0), ("high", 5), ("low too", 0), ("high too", 5)):
            jobs.put(value, priority=priority)
            clock.advance(1.0)
        assert [jobs.get_message().value for _ in range(4)] == ["high", "high too", "low", "low too"]

    def test_what_a_put_may_not_ask_for(self, store: URLQueueStore) -> None:
        jobs = PersistentQueue[str]("jobs", store=store)
        for options, expected in (
            ({"delay": -1}, "delay"),
            ({"timeout": -1}, "timeout"),
            ({"dedupe_key": ""}, "dedupe_key"),
            ({"priority": 1}, "PriorityOrdering"),
            ({"priority": -1}, "negative"),
        ):
            with pytest.raises(ValueError, match=expected):
                jobs.put("x", **options)
        for priority in (True, "1", 1.0):
            with pytest.raises(TypeError, match="integer"):
                jobs.put("x", priority=priority)  # type: ignore[arg-type] # that is the test
        with pytest.raises(ValueError, match="not supported"):
            PersistentQueue[str]("jobs", store=store, deduplication_policy=NoDeduplication()).put("x", dedupe_key="k")
        with pytest.raises(ValueError, match="required"):
            PersistentQueue[str]("jobs", store=store, delivery_policy=EffectivelyOnceDelivery()).put("x")
        assert jobs.stats().total == 0

    def test_bad_arguments_of_the_other_methods(self, jobs: PersistentQueue[Any]) -> None:
        message = jobs.put("x")
        for call in (
            lambda: jobs.get(timeout=-1),
            lambda: jobs.release(message, delay=-1),
            lambda: jobs.requeue_dead(message, delay=-1),
            lambda: jobs.prune_dead_letters(older_than=-1),
            lambda: jobs.count_dead_letters_older_than(older_than=float("nan")),
            lambda: jobs.dead_letters(limit=-1),
            lambda: jobs.record_worker_heartbeat(""),
            lambda: jobs.subscriber_queue("nobody"),
            lambda: subscriber_queue_name("jobs", ""),
        ):
            with pytest.raises(ValueError, match=r"negative|cannot|subscribers"):
                call()


class TestFanOut:
    @pytest.fixture
    def events(self, store: URLQueueStore) -> PersistentQueue[Any]:
        subscribers = StaticFanoutSubscriptions(("billing", "audit"))
        return PersistentQueue("events", store=store, routing_policy=PublishSubscribeRouting(), subscription_policy=subscribers)

    def test_each_subscriber_gets_a_message_of_its_own(self, events: PersistentQueue[Any]) -> None:
        first = events.put({"n": 1}, dedupe_key="k")

        assert (first.queue, first.dedupe_key) == ("events.billing", "k:billing")
        assert events.qsize() == 0
        for name in ("billing", "audit"):
            subscriber = events.subscriber_queue(name)
            assert subscriber.name == events.subscriber_queue_name(name) == subscriber_queue_name("events", name)
            assert subscriber.get_message().dedupe_key == f"k:{name}"
        with pytest.raises(ValueError, match="unknown subscriber"):
            events.subscriber_queue("nobody")

    def test_without_subscribers_there_is_nobody_to_put_to(self, store: URLQueueStore) -> None:
        with pytest.raises(ValueError, match="requires configured subscribers"):
            PersistentQueue[int]("events", store=store, routing_policy=PublishSubscribeRouting()).put(1)


class TestHooks:
    def test_listeners_hear_of_a_message_before_handlers_get_it(self, store: URLQueueStore) -> None:
        heard: list[tuple[str, str]] = []
        jobs = PersistentQueue[str](
            "jobs",
            store=store,
            notification_policy=CallbackNotification(lambda message: heard.append(("told", message.value))),
            dispatch_policy=CallbackDispatcher((lambda message: heard.append(("handled", message.value)),)),
        )
        jobs.put("work")
        assert heard == [("told", "work"), ("handled", "work")]
        assert jobs.qsize() == 1

    def test_hooks_hear_of_a_stored_message_once(self, store: URLQueueStore) -> None:
        told: list[Any] = []
        jobs = PersistentQueue[str](
            "jobs", store=store, notification_policy=CallbackNotification(told.append), dispatch_policy=CallbackDispatcher((told.append,))
        )
        message = jobs.put("work", dedupe_key="k")
        assert jobs.put("again", dedupe_key="k").id == message.id
        assert [one.id for one in told] == [message.id, message.id]

    def test_a_hook_that_fails_has_not_unmade_the_put(self, store: URLQueueStore) -> None:
        def fail(_: QueueMessage) -> None:
            raise RuntimeError("deaf")

        jobs = PersistentQueue[str]("jobs", store=store, notification_policy=CallbackNotification(fail))
        with pytest.raises(RuntimeError, match="deaf"):
            jobs.put("work")
        assert jobs.get() == "work"


def without_token(message: QueueMessage) -> QueueMessage:
    from dataclasses import replace

    return replace(message, token=None)


@pytest.mark.parametrize("maxsize", [-1, True, 1.5, float("nan"), "3", 10**30, None])
def test_a_maxsize_that_is_no_size_is_refused_where_it_is_given(maxsize: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="maxsize must be a whole number"):
        PersistentQueue("jobs", store=MemoryQueueStore(), maxsize=maxsize)
