"""The policies that a queue acts on, as a table of values behind their names.

It looks at `timeout`, `accepts_dedupe_key`, `guarantee`, `ack_timing`, `requires_dedupe_key`, `maxsize`, `overflow`, `fanout` and
`subscribers`; their other values, and all those of `descriptions`, describe what holds anyway. Results are in `commits`, hooks in `hooks`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from holdfast.codec.fields import Whole
from holdfast.surfaces.localqueue.commits import LOCAL_ATOMIC_COMMIT, NO_RESULT_POLICY, CommitPolicy, ResultPolicy
from holdfast.surfaces.localqueue.described import Described
from holdfast.surfaces.localqueue.descriptions import Policy
from holdfast.surfaces.localqueue.idempotency import IdempotencyStore

Overflow = Literal["block", "reject"]


class LeasePolicy(Policy, Protocol):
    """How long a message is leased."""

    @property
    def timeout(self) -> float: ...
    @property
    def uses_leases(self) -> bool: ...
    @property
    def expires_inflight(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class FixedLeaseTimeout(Described):
    """The same number of seconds for every message."""

    kind: ClassVar[dict[str, object]] = {"type": "fixed-timeout"}

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


@dataclass(frozen=True, slots=True)
class DedupeKeySupport(Described):
    """They may; a put that meets a living message of its key gives that one back."""

    deduplication: bool = True
    accepts_dedupe_key: bool = True


@dataclass(frozen=True, slots=True)
class NoDeduplication(Described):
    """They may not: a put with a dedupe key is refused."""

    deduplication: bool = False
    accepts_dedupe_key: bool = False


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


@dataclass(frozen=True, slots=True)
class AtLeastOnceDelivery(Described):
    """Leased, acknowledged after success, delivered again when the lease ends first."""

    guarantee: str = "at-least-once"
    ack_timing: str = "after-success"
    uses_leases: bool = True
    redelivers_expired_leases: bool = True


@dataclass(frozen=True, slots=True)
class AtMostOnceDelivery(Described):
    """Removed by the very step that hands it out: rather lost than handled twice."""

    guarantee: str = "at-most-once"
    ack_timing: str = "before-delivery"
    uses_leases: bool = False
    redelivers_expired_leases: bool = False


@dataclass(frozen=True, slots=True)
class EffectivelyOnceDelivery(Described):
    """As at least once, with a dedupe key on every put; with a ledger, a key that succeeded is not handled again."""

    guarantee: str = "effectively-once"
    ack_timing: str = "after-success"
    uses_leases: bool = True
    redelivers_expired_leases: bool = True
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


@dataclass(frozen=True, slots=True)
class FifoReadyOrdering(Described):
    """By the moment they became due, then as they were put."""

    guarantee: str = "fifo-ready"
    ready_before_delayed: bool = True
    stable_for_same_timestamp: bool = True
    priority_before_sequence: bool = False


@dataclass(frozen=True, slots=True)
class PriorityOrdering(Described):
    """The highest priority among those that are due, then first in, first out."""

    guarantee: str = "priority"
    ready_before_delayed: bool = True
    stable_for_same_timestamp: bool = True
    priority_before_sequence: bool = True


@dataclass(frozen=True, slots=True)
class BestEffortOrdering(Described):
    """Nothing is promised to the reader, though the order is that of `FifoReadyOrdering`."""

    guarantee: str = "best-effort"
    ready_before_delayed: bool = False
    stable_for_same_timestamp: bool = False
    priority_before_sequence: bool = False


class RoutingPolicy(Policy, Protocol):
    """How many consumers a message reaches."""

    @property
    def pattern(self) -> str: ...
    @property
    def single_consumer_per_message(self) -> bool: ...
    @property
    def fanout(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class PointToPointRouting(Described):
    """One."""

    pattern: str = "point-to-point"
    single_consumer_per_message: bool = True
    fanout: bool = False


@dataclass(frozen=True, slots=True)
class PublishSubscribeRouting(Described):
    """One of each subscriber, whose queues get the message in one atomic step."""

    pattern: str = "publish-subscribe"
    single_consumer_per_message: bool = False
    fanout: bool = True


class SubscriptionPolicy(Policy, Protocol):
    """Whether a queue has subscribers."""

    @property
    def subscriptions(self) -> bool: ...
    @property
    def fanout(self) -> bool: ...
    @property
    def subscriber_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class NoSubscriptions(Described):
    """It has none."""

    subscriptions: bool = False
    fanout: bool = False
    subscriber_count: int = 0


@dataclass(frozen=True, slots=True)
class StaticFanoutSubscriptions(Described):
    """It has these, each with a queue of its own: `events.billing`, `events.audit`."""

    kind: ClassVar[dict[str, object]] = {"subscriptions": True, "fanout": True}

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
    def subscriptions(self) -> bool:
        """Always true."""
        return True

    @property
    def fanout(self) -> bool:
        """Always true."""
        return True

    @property
    def subscriber_count(self) -> int:
        """How many there are."""
        return len(self.subscribers)

    def as_dict(self) -> dict[str, object]:
        """The values, with the number of subscribers."""
        return {**self.kind, "subscriber_count": self.subscriber_count, "subscribers": list(self.subscribers)}


class BackpressureStrategy(Policy, Protocol):
    """How much may wait, and what a put does when that is reached."""

    @property
    def maxsize(self) -> int: ...
    @property
    def overflow(self) -> Overflow: ...
    def is_full(self, *, qsize: int) -> bool:
        """Whether a queue of this size is full."""
        ...


MAXSIZE = Whole("maxsize", 0, 2**31 - 1)


@dataclass(frozen=True, slots=True)
class BoundedBackpressure(Described):
    """At most `maxsize` ready messages, 0 for no limit; a put waits for room."""

    kind: ClassVar[dict[str, object]] = {"type": "bounded"}

    maxsize: int = 0
    overflow: Overflow = "block"

    def __post_init__(self) -> None:
        MAXSIZE.check(self.maxsize)
        if self.overflow not in ("block", "reject"):
            raise ValueError(f"backpressure overflow must be 'block' or 'reject', and is {self.overflow!r}")

    def is_full(self, *, qsize: int) -> bool:
        """Whether a queue of this size is full."""
        return 0 < self.maxsize <= qsize


@dataclass(frozen=True, slots=True)
class RejectingBackpressure(Described):
    """At most `maxsize` ready messages; a put raises `queue.Full` at once, whatever `block` says."""

    kind: ClassVar[dict[str, object]] = {"type": "rejecting"}

    maxsize: int = 0
    overflow: Overflow = "reject"

    def __post_init__(self) -> None:
        MAXSIZE.check(self.maxsize)
        if self.overflow != "reject":
            raise ValueError(f"rejecting backpressure overflow must be 'reject', and is {self.overflow!r}")

    def is_full(self, *, qsize: int) -> bool:
        """Whether a queue of this size is full."""
        return 0 < self.maxsize <= qsize


FIXED_LEASE_TIMEOUT = FixedLeaseTimeout()
DEDUPE_KEY_SUPPORT = DedupeKeySupport()
NO_DEDUPLICATION = NoDeduplication()
AT_LEAST_ONCE_DELIVERY = AtLeastOnceDelivery()
UNBOUNDED = BoundedBackpressure()
FIFO_READY_ORDERING = FifoReadyOrdering()
POINT_TO_POINT_ROUTING = PointToPointRouting()
NO_SUBSCRIPTIONS = NoSubscriptions()
