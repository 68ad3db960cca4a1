"""The policies that only describe: where a queue is, and what holds of it anyway."""

from dataclasses import dataclass
from typing import Protocol

from holdfast.surfaces.localqueue.described import Described


class Policy(Protocol):
    """Anything that describes itself."""

    def as_dict(self) -> dict[str, object]:
        """The policy as plain data."""
        ...


class LocalityPolicy(Policy, Protocol):
    """Where the queue lives relative to the process that uses it."""

    @property
    def locality(self) -> str: ...
    @property
    def co_located_state(self) -> bool: ...
    @property
    def crosses_network_boundary(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class LocalQueuePlacement(Described):
    """On this host: memory, SQLite, LMDB."""

    locality: str = "local"
    co_located_state: bool = True
    crosses_network_boundary: bool = False


@dataclass(frozen=True, slots=True)
class RemoteQueuePlacement(Described):
    """Beyond a network: PostgreSQL, Redis, a server."""

    locality: str = "remote"
    co_located_state: bool = False
    crosses_network_boundary: bool = True


class AcknowledgementPolicy(Policy, Protocol):
    """How finished messages are acknowledged."""

    @property
    def acknowledgements(self) -> bool: ...
    @property
    def explicit_ack(self) -> bool: ...
    @property
    def removes_on_ack(self) -> bool: ...


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class PullConsumption(Described):
    """The consumer asks."""

    pattern: str = "pull"
    consumer_requests_messages: bool = True
    producer_invokes_handler: bool = False


@dataclass(frozen=True, slots=True)
class PushConsumption(Described):
    """A producer or dispatcher calls the handler; the workers here still pull."""

    pattern: str = "push"
    consumer_requests_messages: bool = False
    producer_invokes_handler: bool = True


@dataclass(frozen=True, slots=True)
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
