"""The protocol of queue stores: what localqueue asks of one, and what a store of the user's own implements."""

from typing import Any, Protocol

from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats


class QueueStore(Protocol):
    """Keeps the messages of queues. Moments are Unix timestamps; the built-in stores implement it, and so may a class of your own."""

    def enqueue(self, queue: str, value: Any, *, available_at: float, dedupe_key: str | None = None, priority: int = 0) -> QueueMessage:
        """Add a message; one of the same dedupe key that is there already is returned instead."""

    def dequeue(self, queue: str, *, lease_timeout: float, now: float, leased_by: str | None = None) -> QueueMessage | None:
        """Lease the next message that is due, and count an attempt; None where there is none."""

    def get(self, queue: str, message_id: str) -> QueueMessage | None:
        """Look at a message, None where there is none."""

    def ack(self, queue: str, message_id: str) -> bool:
        """Remove a message, and return whether it was there."""

    def release(
        self,
        queue: str,
        message_id: str,
        *,
        available_at: float,
        last_error: dict[str, Any] | None = None,
        failed_at: float | None = None,
    ) -> bool:
        """Make a message ready again, and return whether it was there."""

    def dead_letter(self, queue: str, message_id: str, *, last_error: dict[str, Any] | None = None, failed_at: float | None = None) -> bool:
        """Take a message out of delivery, and return whether it was there."""

    def qsize(self, queue: str, *, now: float) -> int:
        """How many messages are ready and due."""

    def stats(self, queue: str, *, now: float) -> QueueStats:
        """How many messages are where."""

    def record_worker_heartbeat(self, queue: str, worker_id: str, *, now: float) -> None:
        """Note when a worker was alive."""

    def dead_letters(self, queue: str, *, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters."""

    def requeue_dead(self, queue: str, message_id: str, *, available_at: float) -> bool:
        """Make a dead letter ready again, and return whether it was dead."""

    def prune_dead_letters(self, queue: str, *, older_than: float, now: float) -> int:
        """Remove dead letters that failed so many seconds before `now`, and return how many."""

    def count_dead_letters_older_than(self, queue: str, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""

    def empty(self, queue: str, *, now: float) -> bool:
        """Whether no message is ready and due."""

    def purge(self, queue: str) -> int:
        """Remove every message of a queue, and return how many."""
