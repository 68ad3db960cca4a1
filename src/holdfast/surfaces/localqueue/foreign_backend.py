"""The messages of a queue in a store of the user's own, through the methods that localqueue's protocol gives it.

The protocol knows no tokens, no renewal and no steps over several queues, so there is less to promise: see the how-to page.
"""

from collections.abc import Sequence
from typing import Any

from holdfast._sync.flows.polling import poll
from holdfast.clock import wall_s
from holdfast.errors import QueueFull
from holdfast.surfaces.localqueue.messages import Error, QueueMessage, error_as_dict
from holdfast.surfaces.localqueue.policies.acting import UNBOUNDED, BackpressureStrategy
from holdfast.surfaces.localqueue.put_request import Destination, PutRequest, Stored
from holdfast.surfaces.localqueue.queue_store import QueueStore

POLL_S = 0.05
"""How often a store is asked that cannot say when something changes; localqueue asks as often."""


class ForeignBackend:
    """The messages of one queue in a user's store; the methods are those of `EngineBackend`."""

    def __init__(self, store: QueueStore, queue: str) -> None:
        self._store = store
        self._queue = queue

    def put(
        self, value: Any, request: PutRequest, targets: Sequence[Destination], backpressure: BackpressureStrategy, timeout_s: float | None
    ) -> list[Stored]:
        """Add a message to each target, one after the other; whether one is new the store does not say."""
        return [self._put(value, request, target, backpressure, timeout_s) for target in targets]

    def claim(self, lease_timeout: float, leased_by: str | None, timeout_s: float | None, *, takes: bool) -> QueueMessage | None:
        """Lease the next message; with `takes` remove it right after."""

        def dequeue() -> QueueMessage | None:
            return self._store.dequeue(self._queue, lease_timeout=lease_timeout, now=wall_s(), leased_by=leased_by)

        message = poll(dequeue, timeout_s, POLL_S)
        if message is not None and takes:
            self._store.ack(self._queue, message.id)
        return message

    def is_lost(self, message: QueueMessage) -> bool:
        """Whether a leased message was leased again since, as far as the number of its attempts tells."""
        if message.state != "inflight":
            return False
        found = self._store.get(self._queue, message.id)
        return found is not None and found.attempts > message.attempts

    def ack(self, message: QueueMessage) -> bool:
        """Remove a message, unless it was leased again since."""
        return not self.is_lost(message) and self._store.ack(self._queue, message.id)

    def release(self, message: QueueMessage, delay: float, error: Error) -> bool:
        """Give a message back, unless it was leased again since."""
        if self.is_lost(message):
            return False
        return self._store.release(self._queue, message.id, available_at=wall_s() + delay, **_failure(error))

    def dead_letter(self, message: QueueMessage, error: Error) -> bool:
        """Take a message out of delivery, unless it was leased again since."""
        return not self.is_lost(message) and self._store.dead_letter(self._queue, message.id, **_failure(error))

    def requeue_dead(self, message_id: str, delay: float) -> bool:
        return self._store.requeue_dead(self._queue, message_id, available_at=wall_s() + delay)

    def prune_dead_letters(self, older_than: float) -> int:
        return self._store.prune_dead_letters(self._queue, older_than=older_than, now=wall_s())

    def count_dead_letters_older_than(self, older_than: float) -> int:
        return self._store.count_dead_letters_older_than(self._queue, older_than=older_than, now=wall_s())

    def _put(self, value: Any, request: PutRequest, to: Destination, backpressure: BackpressureStrategy, timeout_s: float | None) -> Stored:
        def has_room() -> bool | None:
            is_full = backpressure != UNBOUNDED and backpressure.is_full(qsize=self._store.qsize(to.queue, now=wall_s()))
            return None if is_full else True

        if poll(has_room, timeout_s, POLL_S) is None:
            raise QueueFull(f"queue {to.queue!r} is full: remove messages, or wait for longer than {timeout_s or 0} seconds")
        message = self._store.enqueue(to.queue, value, available_at=wall_s() + request.delay, dedupe_key=to.key, priority=request.priority)
        return Stored(message, is_new=True)


def _failure(error: Error) -> dict[str, Any]:
    return {"last_error": error_as_dict(error), "failed_at": None if error is None else wall_s()}
