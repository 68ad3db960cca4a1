"""The policies that a queue acts on, as a table of values behind their names.

It looks at `timeout`, `accepts_dedupe_key`, `guarantee`, `ack_timing`, `requires_dedupe_key`, `maxsize`, `overflow`, `fanout` and
`subscribers`; their other values, and all those of `descriptive`, describe what holds anyway. Results are in `commits`, hooks in `hooks`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from holdfast.codec.fields import Whole
from holdfast.surfaces.localqueue.idempotency import IdempotencyStore
from holdfast.surfaces.localqueue.policies.base import PER_POLICY, Described, Policy
from holdfast.surfaces.localqueue.policies.commits import LOCAL_ATOMIC_COMMIT, NO_RESULT_POLICY, CommitPolicy, ResultPolicy

__all__ = [
    "AT_LEAST_ONCE_DELIVERY",
    "DEDUPE_KEY_SUPPORT",
    "FIFO_READY_ORDERING",
    "FIXED_LEASE_TIMEOUT",
    "NO_DEDUPLICATION",
    "NO_SUBSCRIPTIONS",
    "POINT_TO_POINT_ROUTING",
    "AtLeastOnceDelivery",
    "AtMostOnceDelivery",
    "BackpressureStrategy",
    "BestEffortOrdering",
    "BoundedBackpressure",
    "DedupeKeySupport",
    "DeduplicationPolicy",
    "DeliveryPolicy",
    "EffectivelyOnceDelivery",
    "FifoReadyOrdering",
    "FixedLeaseTimeout",
    "LeasePolicy",
    "NoDeduplication",
    "NoSubscriptions",
    "OrderingPolicy",
    "PointToPointRouting",
    "PriorityOrdering",
    "PublishSubscribeRouting",
    "RejectingBackpressure",
    "RoutingPolicy",
    "StaticFanoutSubscriptions",
    "SubscriptionPolicy",
]

Overflow = Literal["block", "reject"]


class LeasePolicy(Policy, Protocol):
    """How long a message is leased."""

    @property
    def timeout(self) -> float: ...
    @property
    def uses_leases(self) -> bool: ...
    @property
    def expires_inflight(self) -> bool: ...


@dataclass(frozen=True)
class FixedLeaseTimeout(Described, kind={"type": "fixed-timeout"}):
    """The same number of seconds for every message."""

    timeout: float = 30.0
    uses_leases: bool = True
    expires_inflight: bool = True

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ValueError(f"lease timeout must be greater than zero, and is {self.timeout}")


class DeduplicationPolicy(Policy, Protocol):
    """Whether messages may carry a dedupe key."""

    @property
    def deduplication(self) -> bool: ...
    @property
    def accepts_dedupe_key(self) -> bool: ...


@dataclass(frozen=True)
class Deduplication(Described):
    """The values of a deduplication policy."""

    deduplication: bool = PER_POLICY
    accepts_dedupe_key: bool = PER_POLICY


@dataclass(frozen=True)
class DedupeKeySupport(Deduplication, values=(True, True)):
    """They may; a put that meets a living message of its key gives that one back."""


@dataclass(frozen=True)
class NoDeduplication(Deduplication, values=(False, False)):
    """They may not: a put with a dedupe key is refused."""


class DeliveryPolicy(Policy, Protocol):
    """How often a message is delivered, and when it is acknowledged."""

    @property
    def guarantee(self) -> str: ...
    @property
    def ack_timing(self) -> str: ...
    @property
    def uses_leases(self) -> bool: ...
    @property
    def redelivers_expired_leases(self) -> bool: ...


@dataclass(frozen=True)
class Delivery(Described):
    """The values of a delivery policy."""

    guarantee: str = PER_POLICY
    ack_timing: str = PER_POLICY
    uses_leases: bool = PER_POLICY
    redelivers_expired_leases: bool = PER_POLICY


@dataclass(frozen=True)
class AtLeastOnceDelivery(Delivery, values=("at-least-once", "after-success", True, True)):
    """Leased, acknowledged after success, delivered again when the lease ends first."""


@dataclass(frozen=True)
class AtMostOnceDelivery(Delivery, values=("at-most-once", "before-delivery", False, False)):
    """Removed by the very step that hands it out: rather lost than handled twice."""


@dataclass(frozen=True)
class EffectivelyOnceDelivery(Delivery, values=("effectively-once", "after-success", True, True)):
    """As at least once, with a dedupe key on every put; with a ledger, a key that succeeded is not handled again."""

    requires_dedupe_key: bool = True
    idempotency_store: IdempotencyStore | None = None
    result_policy: ResultPolicy = NO_RESULT_POLICY
    commit_policy: CommitPolicy = LOCAL_ATOMIC_COMMIT


class OrderingPolicy(Policy, Protocol):
    """In which order ready messages are delivered."""

    @property
    def guarantee(self) -> str: ...
    @property
    def ready_before_delayed(self) -> bool: ...
    @property
    def stable_for_same_timestamp(self) -> bool: ...
    @property
    def priority_before_sequence(self) -> bool: ...


@dataclass(frozen=True)
class Ordering(Described):
    """The values of an ordering policy."""

    guarantee: str = PER_POLICY
    ready_before_delayed: bool = PER_POLICY
    stable_for_same_timestamp: bool = PER_POLICY
    priority_before_sequence: bool = PER_POLICY


@dataclass(frozen=True)
class FifoReadyOrdering(Ordering, values=("fifo-ready", True, True, False)):
    """By the moment they became due, then as they were put."""


@dataclass(frozen=True)
class PriorityOrdering(Ordering, values=("priority", True, True, True)):
    """The highest priority among those that are due, then first in, first out."""


@dataclass(frozen=True)
class BestEffortOrdering(Ordering, values=("best-effort", False, False, False)):
    """Nothing is promised to the reader, though the order is that of `FifoReadyOrdering`."""


class RoutingPolicy(Policy, Protocol):
    """How many consumers a message reaches."""

    @property
    def pattern(self) -> str: ...
    @property
    def single_consumer_per_message(self) -> bool: ...
    @property
    def fanout(self) -> bool: ...


@dataclass(frozen=True)
class Routing(Described):
    """The values of a routing policy."""

    pattern: str = PER_POLICY
    single_consumer_per_message: bool = PER_POLICY
    fanout: bool = PER_POLICY


@dataclass(frozen=True)
class PointToPointRouting(Routing, values=("point-to-point", True, False)):
    """One."""


@dataclass(frozen=True)
class PublishSubscribeRouting(Routing, values=("publish-subscribe", False, True)):
    """One of each subscriber, whose queues get the message in one atomic step."""


class SubscriptionPolicy(Policy, Protocol):
    """Whether a queue has subscribers."""

    @property
    def subscriptions(self) -> bool: ...
    @property
    def fanout(self) -> bool: ...
    @property
    def subscriber_count(self) -> int: ...


@dataclass(frozen=True)
class NoSubscriptions(Described):
    """It has none."""

    subscriptions: bool = False
    fanout: bool = False
    subscriber_count: int = 0


@dataclass(frozen=True)
class StaticFanoutSubscriptions(Described, shown=("subscriptions", "fanout", "subscriber_count", "subscribers")):
    """It has these, each with a queue of its own: `events.billing`, `events.audit`."""

    subscriptions: ClassVar[bool] = True
    fanout: ClassVar[bool] = True

    subscribers: tuple[str, ...]

    def __post_init__(self) -> None:
        subscribers = tuple(self.subscribers)
        if not subscribers:
            raise ValueError("subscribers cannot be empty: name at least one")
        if not all(subscribers):
            raise ValueError("subscriber names cannot be empty")
        if len(set(subscribers)) < len(subscribers):
            raise ValueError(f"subscriber names must be unique, and are {', '.join(subscribers)}")
        object.__setattr__(self, "subscribers", subscribers)

    @property
    def subscriber_count(self) -> int:
        """How many there are."""
        return len(self.subscribers)


class BackpressureStrategy(Policy, Protocol):
    """How much may wait, and what a put does when that is reached."""

    @property
    def maxsize(self) -> int: ...
    @property
    def overflow(self) -> Overflow: ...
    def is_full(self, *, qsize: int) -> bool:
        """Whether a queue of this size is full."""


MAXSIZE = Whole("maxsize", 0, 2**31 - 1)


@dataclass(frozen=True)
class Limit(Described):
    """The values of a backpressure strategy, and which of them may be chosen."""

    overflows: ClassVar[tuple[Overflow, ...]] = ("block", "reject")

    maxsize: int = 0
    overflow: Overflow = "block"

    def __post_init__(self) -> None:
        MAXSIZE.check(self.maxsize)
        if self.overflow not in self.overflows:
            raise ValueError(f"backpressure overflow must be {' or '.join(map(repr, self.overflows))}, and is {self.overflow!r}")

    def is_full(self, *, qsize: int) -> bool:
        """Whether a queue of this size is full."""
        return 0 < self.maxsize <= qsize


@dataclass(frozen=True)
class BoundedBackpressure(Limit, values=(0, "block"), kind={"type": "bounded"}):
    """At most `maxsize` ready messages, 0 for no limit; a put waits for room."""


@dataclass(frozen=True)
class RejectingBackpressure(Limit, values=(0, "reject"), kind={"type": "rejecting"}):
    """At most `maxsize` ready messages; a put raises `queue.Full` at once, whatever `block` says."""

    overflows: ClassVar[tuple[Overflow, ...]] = ("reject",)


FIXED_LEASE_TIMEOUT = FixedLeaseTimeout()
DEDUPE_KEY_SUPPORT = DedupeKeySupport()
NO_DEDUPLICATION = NoDeduplication()
AT_LEAST_ONCE_DELIVERY = AtLeastOnceDelivery()
UNBOUNDED = BoundedBackpressure()
FIFO_READY_ORDERING = FifoReadyOrdering()
POINT_TO_POINT_ROUTING = PointToPointRouting()
NO_SUBSCRIPTIONS = NoSubscriptions()
