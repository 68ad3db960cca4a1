"""Policies together: bundles of them, and what they come to for one queue."""

from dataclasses import dataclass, field, fields
from typing import Any, TypedDict, Unpack

from holdfast.surfaces.localqueue.commits import LOCAL_ATOMIC_COMMIT, NO_RESULT_POLICY, CommitPolicy, ResultPolicy
from holdfast.surfaces.localqueue.described import Described
from holdfast.surfaces.localqueue.descriptions import (
    DEAD_LETTER_QUEUE,
    EXPLICIT_ACKNOWLEDGEMENT,
    PULL_CONSUMPTION,
    AcknowledgementPolicy,
    ConsumptionPolicy,
    DeadLetterPolicy,
    LocalityPolicy,
    QueueSemantics,
)
from holdfast.surfaces.localqueue.hooks import NO_DISPATCHER, NO_NOTIFICATION, DispatchPolicy, NotificationPolicy
from holdfast.surfaces.localqueue.idempotency import IdempotencyStore
from holdfast.surfaces.localqueue.policies import (
    AT_LEAST_ONCE_DELIVERY,
    DEDUPE_KEY_SUPPORT,
    FIFO_READY_ORDERING,
    FIXED_LEASE_TIMEOUT,
    NO_SUBSCRIPTIONS,
    POINT_TO_POINT_ROUTING,
    AtMostOnceDelivery,
    BackpressureStrategy,
    BoundedBackpressure,
    DeduplicationPolicy,
    DeliveryPolicy,
    EffectivelyOnceDelivery,
    FixedLeaseTimeout,
    LeasePolicy,
    OrderingPolicy,
    RoutingPolicy,
    SubscriptionPolicy,
)


class Choices(TypedDict, total=False):
    """The policies that may stand beside a delivery policy."""

    locality_policy: LocalityPolicy | None
    lease_policy: LeasePolicy | None
    acknowledgement_policy: AcknowledgementPolicy | None
    dead_letter_policy: DeadLetterPolicy | None
    deduplication_policy: DeduplicationPolicy | None
    consumption_policy: ConsumptionPolicy | None
    dispatch_policy: DispatchPolicy | None
    notification_policy: NotificationPolicy | None
    ordering_policy: OrderingPolicy | None
    routing_policy: RoutingPolicy | None
    subscription_policy: SubscriptionPolicy | None
    backpressure: BackpressureStrategy | None


class Given(Choices, total=False):
    """Everything that a queue may be told about its policies."""

    semantics: QueueSemantics | None
    delivery_policy: DeliveryPolicy | None


@dataclass(frozen=True, slots=True)
class QueuePolicySet(Described):
    """Policies for several queues; what a set names cannot be given to the queue, too."""

    semantics: QueueSemantics | None = None
    locality_policy: LocalityPolicy | None = None
    lease_policy: LeasePolicy | None = None
    acknowledgement_policy: AcknowledgementPolicy | None = None
    dead_letter_policy: DeadLetterPolicy | None = None
    deduplication_policy: DeduplicationPolicy | None = None
    delivery_policy: DeliveryPolicy | None = None
    consumption_policy: ConsumptionPolicy | None = None
    dispatch_policy: DispatchPolicy | None = None
    notification_policy: NotificationPolicy | None = None
    ordering_policy: OrderingPolicy | None = None
    routing_policy: RoutingPolicy | None = None
    subscription_policy: SubscriptionPolicy | None = None
    backpressure: BackpressureStrategy | None = None

    @classmethod
    def at_least_once(cls, **choices: Unpack[Choices]) -> "QueuePolicySet":
        """A set with delivery at least once."""
        return cls(delivery_policy=AT_LEAST_ONCE_DELIVERY, **choices)

    @classmethod
    def at_most_once(cls, **choices: Unpack[Choices]) -> "QueuePolicySet":
        """A set with delivery at most once."""
        return cls(delivery_policy=AtMostOnceDelivery(), **choices)

    @classmethod
    def effectively_once(
        cls,
        *,
        idempotency_store: IdempotencyStore | None = None,
        result_policy: ResultPolicy = NO_RESULT_POLICY,
        commit_policy: CommitPolicy = LOCAL_ATOMIC_COMMIT,
        **choices: Unpack[Choices],
    ) -> "QueuePolicySet":
        """A set with effectively-once delivery, and where it keeps its ledger and results."""
        delivery = EffectivelyOnceDelivery(idempotency_store=idempotency_store, result_policy=result_policy, commit_policy=commit_policy)
        return cls(delivery_policy=delivery, **choices)


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one queue, none of them left open."""

    semantics: QueueSemantics
    locality_policy: LocalityPolicy
    lease_policy: LeasePolicy = FIXED_LEASE_TIMEOUT
    acknowledgement_policy: AcknowledgementPolicy = EXPLICIT_ACKNOWLEDGEMENT
    dead_letter_policy: DeadLetterPolicy = DEAD_LETTER_QUEUE
    deduplication_policy: DeduplicationPolicy = DEDUPE_KEY_SUPPORT
    delivery_policy: DeliveryPolicy = AT_LEAST_ONCE_DELIVERY
    consumption_policy: ConsumptionPolicy = PULL_CONSUMPTION
    dispatch_policy: DispatchPolicy = NO_DISPATCHER
    notification_policy: NotificationPolicy = NO_NOTIFICATION
    ordering_policy: OrderingPolicy = FIFO_READY_ORDERING
    routing_policy: RoutingPolicy = POINT_TO_POINT_ROUTING
    subscription_policy: SubscriptionPolicy = NO_SUBSCRIPTIONS
    backpressure: BackpressureStrategy = field(default_factory=BoundedBackpressure)


def resolve(given: Given, policy_set: QueuePolicySet | None, placement: LocalityPolicy, lease_timeout: float, maxsize: int) -> Policies:
    """The policies of a queue: what was given, else what the set names, else the defaults; ValueError where they disagree."""
    chosen = _merged(given, policy_set)
    if lease_timeout != FIXED_LEASE_TIMEOUT.timeout and "lease_policy" in chosen:
        raise ValueError("pass either lease_timeout= or lease_policy=, not both")
    if maxsize and "backpressure" in chosen:
        raise ValueError("pass either maxsize= or backpressure=, alone or in policy_set=, not both")
    if not lease_timeout > 0:
        raise ValueError(f"lease_timeout must be greater than zero, and is {lease_timeout}")
    chosen.setdefault("lease_policy", FixedLeaseTimeout(lease_timeout))
    chosen.setdefault("backpressure", BoundedBackpressure(maxsize))
    chosen.setdefault("locality_policy", placement)
    wanted = chosen.pop("semantics", None)
    policies = Policies(QueueSemantics(), **chosen)
    meant = meaning_of(policies)
    for name in (one.name for one in fields(QueueSemantics)):
        if wanted is not None and getattr(wanted, name) != getattr(meant, name):
            raise ValueError(
                f"semantics {name} must match the policies, which say {getattr(meant, name)!r} and not {getattr(wanted, name)!r}"
            )
    return Policies(wanted or meant, **chosen)


def meaning_of(policies: Policies) -> QueueSemantics:
    """What the policies come to."""
    return QueueSemantics(
        locality=policies.locality_policy.locality,
        delivery=policies.delivery_policy.guarantee,
        routing=policies.routing_policy.pattern,
        consumption=policies.consumption_policy.pattern,
        ordering=policies.ordering_policy.guarantee,
        leases=policies.lease_policy.uses_leases,
        acknowledgements=policies.acknowledgement_policy.acknowledgements,
        dead_letters=policies.dead_letter_policy.dead_letters,
        deduplication=policies.deduplication_policy.deduplication,
        subscriptions=policies.subscription_policy.subscriptions,
        notifications=policies.notification_policy.notifies,
    )


def _merged(given: Given, policy_set: QueuePolicySet | None) -> dict[str, Any]:
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for one in fields(QueuePolicySet):
        named = getattr(policy_set, one.name, None)
        if named is not None and one.name in chosen:
            raise ValueError(f"pass either {one.name}= or policy_set.{one.name}, not both")
        if named is not None:
            chosen[one.name] = named
    return chosen
