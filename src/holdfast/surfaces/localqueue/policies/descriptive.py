"""The policies that only describe: where a queue is, and what holds of it anyway."""

from dataclasses import dataclass
from typing import Protocol

from holdfast.surfaces.localqueue.policies.base import PER_POLICY, Described, Policy

__all__ = [
    "DEAD_LETTER_QUEUE",
    "EXPLICIT_ACKNOWLEDGEMENT",
    "LOCAL_AT_LEAST_ONCE",
    "LOCAL_QUEUE_PLACEMENT",
    "PULL_CONSUMPTION",
    "AcknowledgementPolicy",
    "ConsumptionPolicy",
    "DeadLetterPolicy",
    "DeadLetterQueue",
    "ExplicitAcknowledgement",
    "LocalQueuePlacement",
    "LocalityPolicy",
    "PullConsumption",
    "PushConsumption",
    "QueueSemantics",
    "RemoteQueuePlacement",
]


class LocalityPolicy(Policy, Protocol):
    """Where the queue lives relative to the process that uses it."""

    @property
    def locality(self) -> str: ...
    @property
    def co_located_state(self) -> bool: ...
    @property
    def crosses_network_boundary(self) -> bool: ...


@dataclass(frozen=True)
class Placement(Described):
    """The values of a locality policy."""

    locality: str = PER_POLICY
    co_located_state: bool = PER_POLICY
    crosses_network_boundary: bool = PER_POLICY


@dataclass(frozen=True)
class LocalQueuePlacement(Placement, values=("local", True, False)):
    """On this host: memory, SQLite, LMDB."""


@dataclass(frozen=True)
class RemoteQueuePlacement(Placement, values=("remote", False, True)):
    """Beyond a network: PostgreSQL, Redis, a server."""


class AcknowledgementPolicy(Policy, Protocol):
    """How finished messages are acknowledged."""

    @property
    def acknowledgements(self) -> bool: ...
    @property
    def explicit_ack(self) -> bool: ...
    @property
    def removes_on_ack(self) -> bool: ...


@dataclass(frozen=True)
class ExplicitAcknowledgement(Described):
    """By the consumer, which removes them."""

    acknowledgements: bool = True
    explicit_ack: bool = True
    removes_on_ack: bool = True


class DeadLetterPolicy(Policy, Protocol):
    """How failed messages leave normal delivery."""

    @property
    def dead_letters(self) -> bool: ...
    @property
    def stores_failures(self) -> bool: ...
    @property
    def supports_requeue(self) -> bool: ...


@dataclass(frozen=True)
class DeadLetterQueue(Described):
    """They stay where they are, dead, to be looked at and requeued."""

    dead_letters: bool = True
    stores_failures: bool = True
    supports_requeue: bool = True


class ConsumptionPolicy(Policy, Protocol):
    """Who sets a message in motion."""

    @property
    def pattern(self) -> str: ...
    @property
    def consumer_requests_messages(self) -> bool: ...
    @property
    def producer_invokes_handler(self) -> bool: ...


@dataclass(frozen=True)
class Consumption(Described):
    """The values of a consumption policy."""

    pattern: str = PER_POLICY
    consumer_requests_messages: bool = PER_POLICY
    producer_invokes_handler: bool = PER_POLICY


@dataclass(frozen=True)
class PullConsumption(Consumption, values=("pull", True, False)):
    """The consumer asks."""


@dataclass(frozen=True)
class PushConsumption(Consumption, values=("push", False, True)):
    """A producer or dispatcher calls the handler; the workers here still pull."""


@dataclass(frozen=True)
class QueueSemantics(Described):
    """What a queue's policies come to, in words."""

    locality: str = "local"
    delivery: str = "at-least-once"
    routing: str = "point-to-point"
    consumption: str = "pull"
    ordering: str = "fifo-ready"
    leases: bool = True
    acknowledgements: bool = True
    dead_letters: bool = True
    deduplication: bool = True
    subscriptions: bool = False
    notifications: bool = False


LOCAL_QUEUE_PLACEMENT = LocalQueuePlacement()
REMOTE_QUEUE_PLACEMENT = RemoteQueuePlacement()
EXPLICIT_ACKNOWLEDGEMENT = ExplicitAcknowledgement()
DEAD_LETTER_QUEUE = DeadLetterQueue()
PULL_CONSUMPTION = PullConsumption()
LOCAL_AT_LEAST_ONCE = QueueSemantics()
