"""Policies together: bundles of them, and what they come to for one queue."""

from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

from holdfast.arguments.options import show_options
from holdfast.surfaces.localqueue.idempotency import IdempotencyStore
from holdfast.surfaces.localqueue.policies.acting import (
    AT_LEAST_ONCE_DELIVERY,
    DEDUPE_KEY_SUPPORT,
    FIFO_READY_ORDERING,
    FIXED_LEASE_TIMEOUT,
    NO_SUBSCRIPTIONS,
    POINT_TO_POINT_ROUTING,
    UNBOUNDED,
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
from holdfast.surfaces.localqueue.policies.base import Described
from holdfast.surfaces.localqueue.policies.commits import LOCAL_ATOMIC_COMMIT, NO_RESULT_POLICY, CommitPolicy, ResultPolicy
from holdfast.surfaces.localqueue.policies.descriptive import (
    DEAD_LETTER_QUEUE,
    EXPLICIT_ACKNOWLEDGEMENT,
    LOCAL_AT_LEAST_ONCE,
    LOCAL_QUEUE_PLACEMENT,
    PULL_CONSUMPTION,
    AcknowledgementPolicy,
    ConsumptionPolicy,
    DeadLetterPolicy,
    LocalityPolicy,
    QueueSemantics,
)
from holdfast.surfaces.localqueue.policies.hooks import NO_DISPATCHER, NO_NOTIFICATION, DispatchPolicy, NotificationPolicy


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


class AllChoices(Choices, total=False):
    """The policies that a queue may be given."""

    semantics: QueueSemantics | None
    delivery_policy: DeliveryPolicy | None


@show_options
@dataclass(frozen=True)
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


POLICIES = tuple(one.name for one in fields(QueuePolicySet))


class QueuePolicies:
    """The policies of one queue, and what they are where nothing else is chosen."""

    semantics: QueueSemantics = LOCAL_AT_LEAST_ONCE
    locality_policy: LocalityPolicy = LOCAL_QUEUE_PLACEMENT
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
    backpressure: BackpressureStrategy = UNBOUNDED

    def _choose(self, chosen: dict[str, Any]) -> None:
        """Take these in place of the defaults; ValueError where the semantics that were chosen are not what the policies come to."""
        vars(self).update(chosen)
        meant = meaning_of(self)
        self.semantics = chosen.get("semantics", meant)
        for one in fields(QueueSemantics):
            said, means = getattr(self.semantics, one.name), getattr(meant, one.name)
            if said != means:
                raise ValueError(f"semantics {one.name} must match the policies, which say {means!r} and not {said!r}")


def resolve(
    given: QueuePolicySet, policy_set: QueuePolicySet | None, placement: LocalityPolicy, lease_timeout: float, maxsize: int
) -> dict[str, Any]:
    """What a queue is told of its policies: what was given, else what the set names; ValueError where they disagree."""
    chosen = _merged(given, policy_set or QueuePolicySet())
    if lease_timeout != FIXED_LEASE_TIMEOUT.timeout and "lease_policy" in chosen:
        raise ValueError("pass either lease_timeout= or lease_policy=, not both")
    if maxsize and "backpressure" in chosen:
        raise ValueError("pass either maxsize= or backpressure=, alone or in policy_set=, not both")
    if not lease_timeout > 0:
        raise ValueError(f"lease_timeout must be greater than zero, and is {lease_timeout}")
    own = {"lease_policy": FixedLeaseTimeout(lease_timeout), "backpressure": BoundedBackpressure(maxsize), "locality_policy": placement}
    return {**own, **chosen}


def meaning_of(policies: QueuePolicies) -> QueueSemantics:
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


def _merged(given: QueuePolicySet, policy_set: QueuePolicySet) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for name in POLICIES:
        explicit, bundled = getattr(given, name), getattr(policy_set, name)
        if explicit is not None and bundled is not None:
            raise ValueError(f"pass either {name}= or policy_set.{name}, not both")
        if explicit is not None or bundled is not None:
            chosen[name] = bundled if explicit is None else explicit
    return chosen
