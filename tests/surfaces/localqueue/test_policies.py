"""The policies: their values, what disagrees, and what each of them does."""

import asyncio
import threading
from typing import Any

import pytest

from holdfast.surfaces import localqueue
from holdfast.surfaces.localqueue import (
    AsyncioNotification,
    AtMostOnceDelivery,
    BoundedBackpressure,
    CallbackDispatcher,
    CallbackNotification,
    EffectivelyOnceDelivery,
    FixedLeaseTimeout,
    InProcessNotification,
    MemoryIdempotencyStore,
    MemoryQueueStore,
    MemoryResultStore,
    PersistentQueue,
    PersistentWorkerConfig,
    PriorityOrdering,
    QoS,
    QueueMessage,
    QueuePolicySet,
    QueueSemantics,
    QueueSpec,
    RejectingBackpressure,
    ReturnStoredResult,
    SagaCommit,
    StaticFanoutSubscriptions,
    URLQueueStore,
    WebSocketNotification,
)
from holdfast.surfaces.localqueue.policies.acting import AT_LEAST_ONCE_DELIVERY
from holdfast.surfaces.localqueue.policies.hooks import message_as_dict

VALUES: dict[str, dict[str, object]] = {
    "LocalQueuePlacement": {"locality": "local", "co_located_state": True, "crosses_network_boundary": False},
    "RemoteQueuePlacement": {"locality": "remote", "co_located_state": False, "crosses_network_boundary": True},
    "FixedLeaseTimeout": {"type": "fixed-timeout", "timeout": 30.0, "uses_leases": True, "expires_inflight": True},
    "ExplicitAcknowledgement": {"acknowledgements": True, "explicit_ack": True, "removes_on_ack": True},
    "DeadLetterQueue": {"dead_letters": True, "stores_failures": True, "supports_requeue": True},
    "DedupeKeySupport": {"deduplication": True, "accepts_dedupe_key": True},
    "NoDeduplication": {"deduplication": False, "accepts_dedupe_key": False},
    "AtLeastOnceDelivery": {
        "guarantee": "at-least-once",
        "ack_timing": "after-success",
        "uses_leases": True,
        "redelivers_expired_leases": True,
    },
    "AtMostOnceDelivery": {
        "guarantee": "at-most-once",
        "ack_timing": "before-delivery",
        "uses_leases": False,
        "redelivers_expired_leases": False,
    },
    "NoResultPolicy": {"type": "none", "stores_result": False, "returns_cached_result": False},
    "ReturnStoredResult": {"type": "return-stored", "stores_result": True, "returns_cached_result": True, "result_store": None},
    "LocalAtomicCommit": {"mode": "local-atomic", "local_commit": True, "coordinates_effects": False},
    "TransactionalOutboxCommit": {
        "mode": "transactional-outbox",
        "local_commit": True,
        "coordinates_effects": True,
        "outbox_store": None,
    },
    "TwoPhaseCommit": {
        "mode": "two-phase",
        "local_commit": False,
        "coordinates_effects": True,
        "prepare_store": None,
        "commit_store": None,
    },
    "SagaCommit": {"mode": "saga", "local_commit": False, "coordinates_effects": True, "saga_store": None},
    "PullConsumption": {"pattern": "pull", "consumer_requests_messages": True, "producer_invokes_handler": False},
    "PushConsumption": {"pattern": "push", "consumer_requests_messages": False, "producer_invokes_handler": True},
    "NoDispatcher": {"dispatches": False, "dispatches_on_put": False, "handler_count": 0},
    "NoNotification": {"notifies": False, "notifies_on_put": False, "listener_count": 0},
    "InProcessNotification": {
        "type": "thread-event",
        "scope": "in-process",
        "notifies": True,
        "notifies_on_put": True,
        "listener_count": 1,
    },
    "AsyncioNotification": {
        "type": "asyncio-event",
        "scope": "in-process",
        "notifies": True,
        "notifies_on_put": True,
        "listener_count": 1,
    },
    "PointToPointRouting": {"pattern": "point-to-point", "single_consumer_per_message": True, "fanout": False},
    "PublishSubscribeRouting": {"pattern": "publish-subscribe", "single_consumer_per_message": False, "fanout": True},
    "NoSubscriptions": {"subscriptions": False, "fanout": False, "subscriber_count": 0},
    "FifoReadyOrdering": {
        "guarantee": "fifo-ready",
        "ready_before_delayed": True,
        "stable_for_same_timestamp": True,
        "priority_before_sequence": False,
    },
    "PriorityOrdering": {
        "guarantee": "priority",
        "ready_before_delayed": True,
        "stable_for_same_timestamp": True,
        "priority_before_sequence": True,
    },
    "BestEffortOrdering": {
        "guarantee": "best-effort",
        "ready_before_delayed": False,
        "stable_for_same_timestamp": False,
        "priority_before_sequence": False,
    },
    "BoundedBackpressure": {"type": "bounded", "maxsize": 0, "overflow": "block"},
    "RejectingBackpressure": {"type": "rejecting", "maxsize": 0, "overflow": "reject"},
}


@pytest.mark.parametrize("name", VALUES)
def test_a_policy_tells_its_values(name: str) -> None:
    policy = getattr(localqueue, name)()
    assert policy.as_dict() == VALUES[name]
    for value in ("type", "scope"):
        VALUES[name].pop(value, None)
    assert all(getattr(policy, field) == value for field, value in VALUES[name].items())


def test_policies_with_parts_tell_them() -> None:
    assert StaticFanoutSubscriptions(("a", "b")).as_dict() == {
        "subscriptions": True,
        "fanout": True,
        "subscriber_count": 2,
        "subscribers": ["a", "b"],
    }
    assert CallbackDispatcher((print,)).as_dict()["handler_count"] == 1
    assert CallbackNotification(print).as_dict() == {
        "type": "callback",
        "scope": "in-process",
        "notifies": True,
        "notifies_on_put": True,
        "listener_count": 1,
    }
    delivery = EffectivelyOnceDelivery(
        idempotency_store=MemoryIdempotencyStore(),
        result_policy=ReturnStoredResult(result_store=MemoryResultStore()),
        commit_policy=SagaCommit(saga_store=MemoryResultStore()),
    )
    told: dict[str, Any] = delivery.as_dict()
    assert (told["idempotency_store"], told["result_policy"]["result_store"], told["commit_policy"]["saga_store"]) == (
        "MemoryIdempotencyStore",
        "MemoryResultStore",
        "MemoryResultStore",
    )
    assert QueuePolicySet.effectively_once().as_dict()["lease_policy"] is None
    assert QueuePolicySet.at_most_once().delivery_policy == AtMostOnceDelivery()
    assert QueuePolicySet.at_least_once(backpressure=BoundedBackpressure(2)).as_dict()["backpressure"] == {
        "type": "bounded",
        "maxsize": 2,
        "overflow": "block",
    }


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: FixedLeaseTimeout(0), "greater than zero"),
        (lambda: BoundedBackpressure(-1), "maxsize must be a whole number from 0"),
        (lambda: BoundedBackpressure(1, "drop"), "overflow"),  # type: ignore[arg-type] # that is the test
        (lambda: RejectingBackpressure(1, "block"), "overflow"),
        (lambda: StaticFanoutSubscriptions(()), "empty"),
        (lambda: StaticFanoutSubscriptions(("",)), "empty"),
        (lambda: StaticFanoutSubscriptions(("a", "a")), "unique"),
        (lambda: CallbackDispatcher(()), "empty"),
        (lambda: CallbackNotification(()), "empty"),
        (lambda: WebSocketNotification(()), "empty"),
        (PersistentQueue[int], "name"),
        (lambda: PersistentQueue[int](""), "name"),
        (lambda: PersistentQueue[int]("a:b"), "name"),
        (lambda: PersistentQueue[int]("q", store=MemoryQueueStore(), store_path="x"), "store"),
        (lambda: PersistentQueue[int]("q", maxsize=1, backpressure=BoundedBackpressure(1)), "maxsize"),
        (lambda: PersistentQueue[int]("q", maxsize=1, policy_set=QueuePolicySet(backpressure=BoundedBackpressure(1))), "maxsize"),
        (lambda: PersistentQueue[int]("q", lease_timeout=3, lease_policy=FixedLeaseTimeout(3)), "lease_timeout"),
        (lambda: PersistentQueue[int]("q", lease_timeout=0), "lease_timeout"),
        (lambda: PersistentQueue[int]("q", maxsize=-1), "maxsize"),
        (lambda: PersistentQueue[int]("q", retry_defaults={"max_tries": 1, "stop": 1}), "both"),
        (lambda: PersistentQueue[int]("q", retry_defaults={"max_tries": 0}), "positive"),
        (lambda: PersistentQueue[int]("q", retry_defaults={"max_tries": True}), "positive"),
        (lambda: PersistentQueue[int]("q", semantics=QueueSemantics(delivery="at-most-once")), "delivery"),
        (lambda: PersistentQueue[int]("q", semantics=QueueSemantics(notifications=True)), "notifications"),
        (
            lambda: PersistentQueue[int]("q", delivery_policy=AtMostOnceDelivery(), policy_set=QueuePolicySet.at_least_once()),
            "delivery_policy",
        ),
        (
            lambda: PersistentQueue[int](spec=QueueSpec("q").with_qos("at-most-once"), delivery_policy=AtMostOnceDelivery()),
            "delivery_policy",
        ),
        (lambda: PersistentWorkerConfig(dead_letter_on_failure=True, dead_letter_on_exhaustion=False), "conflicting"),
        (lambda: PersistentWorkerConfig(release_delay=-1), "release_delay"),
        (lambda: PersistentWorkerConfig(min_interval=-1), "min_interval"),
        (lambda: PersistentWorkerConfig(circuit_breaker_failures=3), "circuit"),
        (lambda: PersistentWorkerConfig(circuit_breaker_cooldown=3), "circuit"),
        (lambda: QueueSpec("q").with_retry(max_retries=1, max_tries=1), "not both"),
        (lambda: QueueSpec("q").with_retry(max_retries=-1), "positive"),
        (lambda: QueueSpec("q").with_circuit_breaker(threshold=-1), "circuit"),
        (lambda: QueueSpec("q").with_release_delay(-1), "release_delay"),
        (lambda: QueueSpec("q").with_qos("sometimes"), "sometimes"),
    ],
)
def test_what_is_bad_or_disagrees_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make()


def test_retry_defaults_are_a_mapping() -> None:
    with pytest.raises(TypeError, match="mapping"):
        PersistentQueue[int]("q", retry_defaults=3)  # type: ignore[arg-type] # that is the test


def test_a_policy_set_takes_the_place_of_its_options() -> None:
    policies = QueuePolicySet.at_most_once(lease_policy=FixedLeaseTimeout(7), backpressure=RejectingBackpressure(3))
    queue = PersistentQueue[int]("q", store=MemoryQueueStore(), policy_set=policies)
    assert (queue.lease_timeout, queue.maxsize, queue.semantics.delivery) == (7, 3, "at-most-once")


def test_what_was_given_is_what_the_queue_has() -> None:
    semantics = QueueSemantics()
    assert PersistentQueue[int]("q", store=MemoryQueueStore(), semantics=semantics).semantics is semantics
    assert QueuePolicySet.at_least_once().delivery_policy is AT_LEAST_ONCE_DELIVERY
    assert PersistentQueue[int]("q", store=MemoryQueueStore()).delivery_policy is AT_LEAST_ONCE_DELIVERY


def test_a_queue_beyond_a_network_says_so() -> None:
    queue = PersistentQueue[int]("q", store=URLQueueStore("postgresql://host/db"))
    assert queue.locality_policy == localqueue.RemoteQueuePlacement()
    assert queue.semantics.locality == "remote"


class TestSpecs:
    def test_a_spec_becomes_a_queue_and_a_configuration(self) -> None:
        spec = (
            QueueSpec("base")
            .with_name("jobs")
            .with_qos(QoS.EFFECTIVELY_ONCE, result_policy=ReturnStoredResult())
            .with_dead_letter_queue()
            .with_retry(max_retries=3)
            .with_dead_letter_on_failure(False)
            .with_release_delay(4)
            .with_min_interval(1)
            .with_circuit_breaker(threshold=5)
        )
        queue = PersistentQueue[Any].from_spec(spec, store=MemoryQueueStore())
        config = queue.build_worker_config(min_interval=2)
        assert (queue.name, queue.delivery_policy.guarantee, queue.retry_defaults) == ("jobs", "effectively-once", {"max_tries": 3})
        assert (config.dead_letter_on_failure, config.release_delay, config.min_interval) == (False, 4, 2)
        assert (config.circuit_breaker_failures, config.circuit_breaker_cooldown, config.retry_kwargs) == (5, 30.0, {"max_tries": 3})
        assert spec.with_circuit_breaker(threshold=0, cooldown=9).circuit_breaker_cooldown == 0.0
        assert PersistentQueue[int](spec=spec, store=MemoryQueueStore()).name == "jobs"
        assert spec.build_queue(store=MemoryQueueStore()).name == "jobs"

    def test_a_queue_without_a_spec_configures_workers_by_its_retry_defaults(self) -> None:
        queue = PersistentQueue[int]("q", store=MemoryQueueStore(), retry_defaults={"max_tries": 2})
        assert queue.build_worker_config().retry_kwargs == {"max_tries": 2}
        assert queue.build_worker_config(max_tries=5).retry_kwargs == {"max_tries": 5}

    def test_a_subclass_makes_its_own_kind_of_queue(self) -> None:
        class OwnQueue(PersistentQueue[Any]):
            pass

        assert type(OwnQueue.from_spec(QueueSpec("jobs"), store=MemoryQueueStore())) is OwnQueue

    @pytest.mark.parametrize(
        ("spec", "options"),
        [
            (QueueSpec("jobs").with_retry(max_tries=3), {"retry_defaults": {"max_tries": 5}}),
            (QueueSpec("jobs").with_qos("at-most-once"), {"policy_set": QueuePolicySet(ordering_policy=PriorityOrdering())}),
            (QueueSpec("jobs").with_dead_letter_queue(), {"policy_set": QueuePolicySet.at_least_once()}),
        ],
    )
    def test_what_a_spec_says_cannot_be_said_again(self, spec: QueueSpec, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="not both"):
            spec.build_queue(store=MemoryQueueStore(), **options)

    def test_qos_is_text(self) -> None:
        assert [*QoS] == ["at-least-once", "at-most-once", "effectively-once"]


class TestNotifications:
    def test_a_thread_waits_for_the_event(self) -> None:
        notification = InProcessNotification()
        queue = PersistentQueue[int]("q", store=MemoryQueueStore(), notification_policy=notification)
        assert not notification.wait(timeout=0.0)
        put = threading.Thread(target=queue.put, args=(1,))
        put.start()
        assert notification.wait(timeout=30.0)
        put.join()
        notification.clear()
        assert not notification.wait(timeout=0.0)
        assert queue.semantics.notifications

    @pytest.mark.anyio
    async def test_a_task_waits_for_the_event(self) -> None:
        notification = AsyncioNotification()
        queue = PersistentQueue[int]("q", store=MemoryQueueStore(), notification_policy=notification)
        assert not await notification.wait_async(timeout=0.001)
        await asyncio.to_thread(queue.put, 1)
        assert await notification.wait_async(timeout=30.0)
        notification.clear()
        queue.put(2)
        assert await notification.wait_async()

    @pytest.mark.anyio
    async def test_connections_are_sent_the_message_from_any_thread(self) -> None:
        sent: list[tuple[str, Any]] = []
        arrived = asyncio.Event()

        class Plain:
            async def send(self, payload: Any) -> None:
                sent.append(("send", payload))
                arrived.set()

        class Text(Plain):
            async def send_text(self, payload: str) -> None:
                sent.append(("text", payload))
                arrived.set()

        class Json(Plain):
            async def send_json(self, payload: Any) -> None:
                sent.append(("json", payload["value"]))
                arrived.set()

        for connections, serializer, expected in (
            (Json(), None, ("json", 1)),
            ([Text()], lambda message: str(message.value), ("text", "1")),
            ((Plain(),), lambda message: message.value, ("send", 1)),
        ):
            notification = WebSocketNotification(connections, **({"serializer": serializer} if serializer else {}))  # type: ignore[arg-type] # see above
            assert notification.as_dict()["listener_count"] == 1
            queue = PersistentQueue[int]("q", store=MemoryQueueStore(), notification_policy=notification)
            for put in (lambda queue=queue: asyncio.to_thread(queue.put, 1), lambda queue=queue: put_here(queue)):
                arrived.clear()
                await put()
                await asyncio.wait_for(arrived.wait(), 30.0)
                assert sent.pop() == expected

    def test_what_is_sent_tells_nobody_the_token(self) -> None:
        message = QueueMessage(id="a", value=1, queue="q", token=7)
        names = "id value queue state attempts created_at available_at leased_until leased_by last_error failed_at attempt_history"
        assert {*message_as_dict(message)} == {*names.split(), "dedupe_key", "priority"}

    def test_without_a_loop_nothing_can_be_sent(self) -> None:
        class Plain:
            async def send(self, payload: Any) -> None:
                del payload

        with pytest.raises(RuntimeError, match="loop"):
            WebSocketNotification(Plain()).notify(QueueMessage(id="a", value=1, queue="q"))


async def put_here(queue: PersistentQueue[int]) -> None:
    queue.put(1)
