# Generated from src/holdfast/surfaces/localqueue/_async/delivery.py by tools/unasync.py; do not edit.
"""A message in a worker's hands, and how it is ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from holdfast._sync.handles.claims import QueueClaim
from holdfast._sync.handles.together import Together
from holdfast.errors import ClaimLost
from holdfast.process.blocking_calls import call
from holdfast.surfaces.localqueue.engine_backend import EngineBackend
from holdfast.surfaces.localqueue.foreign_backend import ForeignBackend
from holdfast.surfaces.localqueue.messages import QueueMessage, claimed, wall_offset_us
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue


class ClaimedDelivery:
    """A message under a claim. The queue's methods end it, those of a subclass too, and take part in the step."""

    def __init__(self, queue: PersistentQueue[Any], backend: EngineBackend, claim: QueueClaim[Any]) -> None:
        self._queue = queue
        self._backend = backend
        self._claim = claim
        self.failures = claim.failures
        """How often its delivery ended in a failure or an expiry."""
        self.message = claimed(claim.record, wall_offset_us(queue.client))

    def is_lost(self) -> bool:
        """Whether it may be another worker's by now: the lease ended, or the store said that it is lost."""
        return self._claim.lost

    def check(self) -> None:
        """Raise `ClaimLost` if it is lost."""
        self._claim.check()

    @contextmanager
    def ending(self) -> Iterator[Together | None]:
        """The step, committed when the context is left."""
        with Together(self._queue.client) as step, self._backend.joined(self.message, step, self._claim):
            yield step

    def ack(self) -> None:
        """End it as done."""
        self._queue.ack(self.message)

    def release(self, delay: float, error: Exception) -> None:
        """Give it back."""
        self._queue.release(self.message, delay=delay, error=error)

    def dead_letter(self, error: Exception) -> None:
        """Take it out of delivery."""
        self._queue.dead_letter(self.message, error=error)


class LooseDelivery:
    """A message that no claim of ours holds: it is not renewed, there is no step, and each thing that is kept of it is saved by itself."""

    def __init__(self, queue: PersistentQueue[Any], message: QueueMessage) -> None:
        self._queue = queue
        self.message = message
        self.failures = max(0, message.attempts - 1)

    def is_lost(self) -> bool:
        """Whether it was leased again since, as far as the store tells."""
        backend = self._queue.backend
        return isinstance(backend, ForeignBackend) and call(backend.is_lost, self.message)

    def check(self) -> None:
        if self.is_lost():
            raise self._lost()

    @contextmanager
    def ending(self) -> Iterator[Together | None]:
        yield None

    def ack(self) -> None:
        """End it as done; `ClaimLost` where the queue says that it could not."""
        if call(self._queue.ack, self.message) is False:
            raise self._lost()

    def release(self, delay: float, error: Exception) -> None:
        call(partial(self._queue.release, self.message, delay=delay, error=error))

    def dead_letter(self, error: Exception) -> None:
        call(partial(self._queue.dead_letter, self.message, error=error))

    def _lost(self) -> ClaimLost:
        message = (
            f"message {self.message.id} of queue {self.message.queue!r} is no longer held: its lease of {self._queue.lease_timeout} s ended"
        )
        return ClaimLost(f"{message} before its handler did, and nobody renews a lease in a store of your own", [])


Delivery = ClaimedDelivery | LooseDelivery
"""A message in a worker's hands."""
