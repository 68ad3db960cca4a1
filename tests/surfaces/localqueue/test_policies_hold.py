"""Each policy by itself: it changes what a queue does, or what it describes is so."""

import queue as standard
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.stores.memory import MemoryStore
from holdfast.surfaces.localqueue import (
    AtLeastOnceDelivery,
    AtMostOnceDelivery,
    BestEffortOrdering,
    BoundedBackpressure,
    CallbackDispatcher,
    CallbackNotification,
    DeadLetterQueue,
    DedupeKeySupport,
    EffectivelyOnceDelivery,
    ExplicitAcknowledgement,
    FifoReadyOrdering,
    FixedLeaseTimeout,
    LocalQueuePlacement,
    NoDeduplication,
    NoDispatcher,
    NoNotification,
    NoSubscriptions,
    PersistentQueue,
    PointToPointRouting,
    PriorityOrdering,
    PublishSubscribeRouting,
    PullConsumption,
    PushConsumption,
    QueueMessage,
    RejectingBackpressure,
    RemoteQueuePlacement,
    StaticFanoutSubscriptions,
    URLQueueStore,
    persistent_worker,
)
from holdfast.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[URLQueueStore]:
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as client:
        yield URLQueueStore(client)


def queue(store: URLQueueStore, **policies: Any) -> PersistentQueue[Any]:
    return PersistentQueue("jobs", store=store, **policies)


@pytest.mark.parametrize("timeout", [5.0, 60.0])
def test_a_fixed_lease_time_out_is_when_a_message_comes_back(store: URLQueueStore, clock: FakeClock, timeout: float) -> None:
    jobs = queue(store, lease_policy=FixedLeaseTimeout(timeout))
    jobs.put(1)
    jobs.get_message()
    clock.advance(timeout - 0.001)
    assert jobs.empty()
    clock.advance(0.001)
    assert jobs.qsize() == 1


def test_an_explicit_acknowledgement_removes_and_nothing_else_does(store: URLQueueStore) -> None:
    jobs = queue(store, acknowledgement_policy=ExplicitAcknowledgement())
    jobs.put(1)
    message = jobs.get_message()
    assert jobs.inspect(message.id) is not None
    assert jobs.ack(message)
    assert jobs.inspect(message.id) is None


def test_a_dead_letter_queue_keeps_the_failure_and_gives_it_back(store: URLQueueStore) -> None:
    jobs = queue(store, dead_letter_policy=DeadLetterQueue())
    jobs.put(1)
    jobs.dead_letter(jobs.get_message(), error="broken")
    (dead,) = jobs.dead_letters()
    assert dead.last_error is not None
    assert (dead.last_error["message"], jobs.empty()) == ("broken", True)
    assert jobs.requeue_dead(dead)
    assert jobs.get() == 1


def test_dedupe_keys_are_supported_or_refused(store: URLQueueStore) -> None:
    with_keys = queue(store, deduplication_policy=DedupeKeySupport())
    assert with_keys.put("first", dedupe_key="k").id == with_keys.put("second", dedupe_key="k").id
    without = queue(store, deduplication_policy=NoDeduplication())
    with pytest.raises(ValueError, match="dedupe_key"):
        without.put("third", dedupe_key="k")
    assert (with_keys.qsize(), without.semantics.deduplication) == (1, False)


def test_at_least_once_delivers_again_what_was_not_acknowledged(store: URLQueueStore, clock: FakeClock) -> None:
    jobs = queue(store, delivery_policy=AtLeastOnceDelivery())
    jobs.put(1)
    assert jobs.get() == 1
    clock.advance(30.0)
    assert jobs.get() == 1


def test_at_most_once_never_does(store: URLQueueStore, clock: FakeClock) -> None:
    jobs = queue(store, delivery_policy=AtMostOnceDelivery())
    jobs.put(1)
    message = jobs.get_message()
    assert (message.value, jobs.stats().total, jobs.release(message)) == (1, 0, False)
    clock.advance(30.0)
    assert jobs.empty()


def test_effectively_once_asks_for_a_key_and_leases(store: URLQueueStore, clock: FakeClock) -> None:
    jobs = queue(store, delivery_policy=EffectivelyOnceDelivery())
    with pytest.raises(ValueError, match="dedupe_key"):
        jobs.put(1)
    jobs.put(1, dedupe_key="k")
    assert jobs.get() == 1
    clock.advance(30.0)
    assert jobs.get() == 1


@pytest.mark.parametrize("consumption", [PullConsumption(), PushConsumption()])
def test_whichever_consumption_is_described_workers_pull_and_a_put_calls_only_dispatchers(store: URLQueueStore, consumption: Any) -> None:
    seen: list[Any] = []
    jobs = queue(store, consumption_policy=consumption, dispatch_policy=NoDispatcher())
    worker = persistent_worker(jobs)(seen.append)
    jobs.put(1)
    assert seen == []
    worker()
    assert (seen, jobs.semantics.consumption) == ([1], consumption.pattern)


def test_a_callback_is_told_first_and_dispatched_to_then_and_takes_nothing_away(store: URLQueueStore) -> None:
    calls: list[tuple[str, Any]] = []

    def told(message: QueueMessage) -> None:
        calls.append(("told", message.value))

    def dispatched(message: QueueMessage) -> None:
        calls.append(("dispatched", message.value))

    jobs = queue(store, notification_policy=CallbackNotification(told), dispatch_policy=CallbackDispatcher((dispatched,)))
    jobs.put(1)
    assert calls == [("told", 1), ("dispatched", 1)]
    assert (jobs.qsize(), jobs.semantics.notifications) == (1, True)


def test_quiet_policies_call_nobody(store: URLQueueStore) -> None:
    jobs = queue(store, notification_policy=NoNotification(), dispatch_policy=NoDispatcher())
    jobs.put(1)
    assert (jobs.notification_policy.listener_count, jobs.dispatch_policy.handler_count, jobs.semantics.notifications) == (0, 0, False)


def test_point_to_point_gives_a_message_to_one(store: URLQueueStore) -> None:
    jobs = queue(store, routing_policy=PointToPointRouting(), subscription_policy=NoSubscriptions())
    jobs.put(1)
    jobs.get_message()
    with pytest.raises(standard.Empty):
        queue(store).get_nowait()
    with pytest.raises(ValueError, match="subscribers"):
        jobs.subscriber_queue("a")


def test_publish_subscribe_gives_it_to_one_of_each_subscriber(store: URLQueueStore) -> None:
    events = queue(store, routing_policy=PublishSubscribeRouting(), subscription_policy=StaticFanoutSubscriptions(("a", "b")))
    events.put(1)
    assert [events.subscriber_queue(name).get() for name in ("a", "b")] == [1, 1]
    assert events.empty()
    with pytest.raises(ValueError, match="subscribers"):
        queue(store, routing_policy=PublishSubscribeRouting()).put(1)


@pytest.mark.parametrize("ordering", [FifoReadyOrdering(), BestEffortOrdering()])
def test_without_priorities_what_was_due_first_comes_first(store: URLQueueStore, clock: FakeClock, ordering: Any) -> None:
    jobs = queue(store, ordering_policy=ordering)
    jobs.put("later", delay=5.0)
    jobs.put("first")
    jobs.put("second")
    clock.advance(5.0)
    assert [jobs.get() for _ in range(3)] == ["first", "second", "later"]
    with pytest.raises(ValueError, match="PriorityOrdering"):
        jobs.put("urgent", priority=1)


def test_with_priorities_the_highest_that_is_due_comes_first(store: URLQueueStore) -> None:
    jobs = queue(store, ordering_policy=PriorityOrdering())
    for value, priority in (("a", 0), ("b", 2), ("c", 2), ("d", 1)):
        jobs.put(value, priority=priority)
    assert [jobs.get() for _ in range(4)] == ["b", "c", "d", "a"]


@pytest.mark.parametrize("backpressure", [BoundedBackpressure(1), RejectingBackpressure(1), BoundedBackpressure(1, "reject")])
def test_what_is_full_waits_or_rejects(store: URLQueueStore, backpressure: Any) -> None:
    jobs = queue(store, backpressure=backpressure)
    jobs.put(1)
    assert (jobs.full(), jobs.maxsize) == (True, 1)
    # Rejecting, it would not return from the first of these if it waited.
    waits: dict[str, Any] = {} if backpressure.overflow == "reject" else {"timeout": 0.01}
    with pytest.raises(standard.Full):
        jobs.put(2, **waits)
    jobs.get_message()
    assert not jobs.full()


def test_a_placement_is_that_of_the_store_unless_it_is_given(store: URLQueueStore) -> None:
    assert queue(store).locality_policy == LocalQueuePlacement()
    assert queue(URLQueueStore("redis://host")).locality_policy == RemoteQueuePlacement()
    assert queue(store, locality_policy=RemoteQueuePlacement()).semantics.locality == "remote"
