"""The methods of a queue store on a store of ours, for programs that call them themselves.

Leases end, and messages come due, by the store's own clock: of the moments that are given, those in the future delay a message, and `now`
counts only where it is kept or compared with an age.
"""

from pathlib import Path
from typing import Any

from holdfast.clock import wall_us
from holdfast.surfaces.localqueue.backends import Target as PutTarget
from holdfast.surfaces.localqueue.engine_backend import EngineBackend
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats
from holdfast.surfaces.localqueue.names import queue_name
from holdfast.surfaces.localqueue.places import Place, Target
from holdfast.surfaces.localqueue.placing import Placing
from holdfast.surfaces.localqueue.policies import UNBOUNDED

HELD = 10_000
"""How many leases a store object remembers; the longest held are forgotten first."""


class PlacedQueues(Place):
    """Queues at a place, by the methods of localqueue's protocol.

    `ack`, `release` and `dead_letter` act under the token of the lease that this object's `dequeue` took, if it took one; else as an
    administrator does, only while nobody holds the message.
    """

    def __init__(self, target: Target = None, *, path: Path | None = None) -> None:
        super().__init__(target, path=path)
        self._held: dict[tuple[str, str], QueueMessage] = {}

    def enqueue(self, queue: str, value: Any, *, available_at: float, dedupe_key: str | None = None, priority: int = 0) -> QueueMessage:
        """Add a message; one of the same dedupe key that is there already is returned instead."""
        placing = Placing(delay=_in_s(available_at), dedupe_key=dedupe_key, priority=priority)
        (stored,) = self._queue(queue).put(value, placing, [PutTarget(queue, dedupe_key)], UNBOUNDED, None)
        return stored.message

    def dequeue(self, queue: str, *, lease_timeout: float, now: float, leased_by: str | None = None) -> QueueMessage | None:
        """Lease the next message that is due, None where there is none."""
        del now
        message = self._queue(queue).claim(lease_timeout, leased_by, None, takes=False)
        if message is not None:
            self._held[queue, message.id] = message
            for forgotten in [*self._held][:-HELD]:
                del self._held[forgotten]
        return message

    def get(self, queue: str, message_id: str) -> QueueMessage | None:
        """Look at a message, None where there is none."""
        return self._queue(queue).inspect(message_id)

    def ack(self, queue: str, message_id: str) -> bool:
        """Remove a message."""
        return self._queue(queue).ack(self._let_go(queue, message_id))

    def release(
        self,
        queue: str,
        message_id: str,
        *,
        available_at: float,
        last_error: dict[str, Any] | None = None,
        failed_at: float | None = None,
    ) -> bool:
        """Make a message ready again; the store notes itself when it failed."""
        del failed_at
        return self._queue(queue).release(self._let_go(queue, message_id), _in_s(available_at), last_error)

    def dead_letter(self, queue: str, message_id: str, *, last_error: dict[str, Any] | None = None, failed_at: float | None = None) -> bool:
        """Take a message out of delivery; the store notes itself when it failed."""
        del failed_at
        return self._queue(queue).dead_letter(self._let_go(queue, message_id), last_error)

    def qsize(self, queue: str, *, now: float) -> int:
        """How many messages are ready and due."""
        del now
        return self._queue(queue).qsize()

    def stats(self, queue: str, *, now: float) -> QueueStats:
        """How many messages are where, who holds them, and what workers did."""
        del now
        return self._queue(queue).stats()

    def record_worker_heartbeat(self, queue: str, worker_id: str, *, now: float) -> None:
        """Note when a worker was alive."""
        self._queue(queue).record_worker_heartbeat(worker_id, now)

    def dead_letters(self, queue: str, *, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters, the longest dead first."""
        return self._queue(queue).dead_letters(limit)

    def requeue_dead(self, queue: str, message_id: str, *, available_at: float) -> bool:
        """Make a dead letter ready again, and return whether it was dead."""
        return self._queue(queue).requeue_dead(message_id, _in_s(available_at))

    def prune_dead_letters(self, queue: str, *, older_than: float, now: float) -> int:
        """Remove what had been dead for so many seconds at `now`, and return how many."""
        return self._queue(queue).prune_dead_letters(_age(older_than, now))

    def count_dead_letters_older_than(self, queue: str, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        return self._queue(queue).count_dead_letters_older_than(_age(older_than, now))

    def empty(self, queue: str, *, now: float) -> bool:
        """Whether no message is ready and due."""
        return self.qsize(queue, now=now) == 0

    def purge(self, queue: str) -> int:
        """Remove every message of a queue, and return how many."""
        return self._queue(queue).purge()

    def _queue(self, name: str) -> EngineBackend:
        return EngineBackend(self, queue_name(name))

    def _let_go(self, queue: str, message_id: str) -> QueueMessage:
        return self._held.pop((queue, message_id), None) or QueueMessage(message_id, None, queue)


def _in_s(moment: float) -> float:
    """How many seconds it is until a moment, 0 where it has passed."""
    return max(0.0, moment - wall_us() / 1_000_000)


def _age(older_than: float, at: float) -> float:
    """The age now of what had an age at a moment."""
    return max(0.0, older_than + wall_us() / 1_000_000 - at)
