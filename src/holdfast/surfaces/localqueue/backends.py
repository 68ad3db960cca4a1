"""What a queue asks of whoever keeps its messages: a store of ours, or one of the user's own."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from holdfast.surfaces.localqueue.messages import Error, QueueMessage, QueueStats
from holdfast.surfaces.localqueue.placing import Placing
from holdfast.surfaces.localqueue.policies import BackpressureStrategy

POLL_S = 1.0
"""How much a missed wake-up can cost a `get` or a `put`."""


class Stored(NamedTuple):
    """What a put came to."""

    message: QueueMessage
    is_new: bool
    """False for the message of a dedupe key that was there already."""


class Target(NamedTuple):
    """One of the queues that a put goes to, and the dedupe key there."""

    queue: str
    key: str | None


class Backend(Protocol):
    """The messages of one queue. Time-outs are None for none, `math.inf` for ever."""

    def put(
        self, value: Any, placing: Placing, targets: Sequence[Target], backpressure: BackpressureStrategy, timeout_s: float | None
    ) -> list[Stored]:
        """Add a message to each target; `queue.Full` where there is no room in time."""
        ...

    def claim(self, lease_timeout: float, leased_by: str | None, timeout_s: float | None, *, takes: bool) -> QueueMessage | None:
        """Lease the next message, or with `takes` remove it; None where none came in time."""
        ...

    def inspect(self, message_id: str) -> QueueMessage | None:
        """Look at a message."""
        ...

    def ack(self, message: QueueMessage) -> bool:
        """Remove a message."""
        ...

    def release(self, message: QueueMessage, delay: float, error: Error) -> bool:
        """Give a message back, to the back of the line."""
        ...

    def dead_letter(self, message: QueueMessage, error: Error) -> bool:
        """Take a message out of delivery."""
        ...

    def qsize(self) -> int:
        """How many messages are due."""
        ...

    def stats(self) -> QueueStats:
        """How many messages are where."""
        ...

    def record_worker_heartbeat(self, worker_id: str, at: float) -> None:
        """Note when a worker was alive."""
        ...

    def dead_letters(self, limit: int | None) -> list[QueueMessage]:
        """The dead letters."""
        ...

    def requeue_dead(self, message_id: str, delay: float) -> bool:
        """Give a dead letter another chance."""
        ...

    def prune_dead_letters(self, older_than: float) -> int:
        """Remove dead letters by age."""
        ...

    def count_dead_letters_older_than(self, older_than: float) -> int:
        """How many a prune would remove."""
        ...

    def purge(self) -> int:
        """Remove every message."""
        ...
