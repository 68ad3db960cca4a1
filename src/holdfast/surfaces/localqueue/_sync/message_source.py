# Generated from src/holdfast/surfaces/localqueue/_async/message_source.py by tools/unasync.py; do not edit.
"""Where a worker gets its messages.

Those of a store of ours are claimed, renewed while they are handled, and ended in one step with what is kept of them. Those of a store of
the user's own, and whatever else a subclass's `get_message` hands out, are got and ended by the methods of the queue alone.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from queue import Empty
from typing import Any

from holdfast._sync.flows.claiming import claim_since
from holdfast._sync.flows.holding import Holding
from holdfast._sync.flows.pausing import pause_until
from holdfast._sync.flows.polling import poll
from holdfast._sync.handles.claimed import QueueClaimContext
from holdfast._sync.handles.claims import QueueClaim
from holdfast._sync.handles.mapping import Dict
from holdfast.clock import wall_s
from holdfast.codec import JSON
from holdfast.commands import Browse
from holdfast.holding.hold import Hold, monotonic_s
from holdfast.process.blocking_calls import call, sleep
from holdfast.records import Message
from holdfast.surfaces.localqueue._sync.delivery import ClaimedDelivery, Delivery, LooseDelivery
from holdfast.surfaces.localqueue.engine_backend import POLL_S, WORKERS, Claimer, EngineBackend, claimer
from holdfast.surfaces.localqueue.foreign_backend import POLL_S as ASK_S
from holdfast.surfaces.localqueue.messages import QueueMessage, claimed, wall_offset_us
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue
from holdfast.workers.handlers.outcomes import shown

HEARTBEAT_S = 1.0
"""A worker that is busy shows up no more often than this."""


class ForeignMessages:
    """The messages of a queue in a store of the user's own, or of a subclass, got and ended by the queue's own methods."""

    def __init__(self, queue: PersistentQueue[Any], by: Claimer) -> None:
        self._queue = queue
        self._by = by

    def now(self) -> float:
        """The clock of this machine."""
        return monotonic_s()

    def pause_until(self, moment: float) -> None:
        """Wait for a moment on that clock."""
        sleep(max(0.0, moment - self.now()))

    def show_up(self) -> None:
        """Note that the worker is alive."""
        if self._by.worker_id is not None:
            call(self._queue.record_worker_heartbeat, self._by.worker_id)

    @contextmanager
    def next(self, timeout_s: float) -> Iterator[Delivery | None]:
        """The next message while the context lasts, None where none came in time."""
        message = self.get(timeout_s)
        if message is None:
            yield None
            return
        with self.loose(message) as delivery:
            yield delivery

    def get(self, timeout_s: float) -> QueueMessage | None:
        """The next message, None where none came in time."""

        def ask() -> QueueMessage | None:
            try:
                # As localqueue's workers for tasks call it.
                return call(self._queue.get_message, False, undo=self._queue.release)  # noqa: FBT003 - see above
            except Empty:
                return None

        token = claimer.set(self._by)
        try:
            return poll(ask, timeout_s, ASK_S)
        finally:
            claimer.reset(token)

    @contextmanager
    def loose(self, message: QueueMessage) -> Iterator[Delivery]:
        """The message in the worker's hands; released when the handler is cancelled or interrupted."""
        try:
            yield LooseDelivery(self._queue, message)
        except Exception:
            raise
        except BaseException:
            if not self._queue.takes:
                call(self._queue.release, message)
            raise


class ClaimedMessages:
    """The messages of a queue in a store of ours; a subclass may have methods of its own in place of the queue's."""

    def __init__(self, queue: PersistentQueue[Any], backend: EngineBackend, by: Claimer) -> None:
        self._queue = queue
        self._backend = backend
        self._by = by
        self._methods = ForeignMessages(queue, by)
        self._shows_up_at = -math.inf

    def now(self) -> float:
        """The clock of holders."""
        return self._queue.client.keepalive.now()

    def pause_until(self, moment: float) -> None:
        """Wait for a moment on that clock; raises `Closed` when the client is closed meanwhile."""
        pause_until(self._queue.client, moment)

    def show_up(self) -> None:
        """Note that the worker is alive; often enough is enough, unless a subclass wants to hear of it."""
        if self._queue.overrides("record_worker_heartbeat"):
            self._methods.show_up()
        elif self._by.worker_id is not None and self.now() >= self._shows_up_at:
            self._shows_up_at = self.now() + HEARTBEAT_S
            self._workers.put((self._queue.name, "seen", self._by.worker_id), wall_s())

    def next(self, timeout_s: float) -> AbstractContextManager[Delivery | None]:
        """The next message, held while the context lasts."""
        if self._queue.overrides("get_message"):
            return self._got(timeout_s)
        return self._taken(timeout_s) if self._queue.takes else self._claimed(timeout_s)

    @contextmanager
    def _claimed(self, timeout_s: float) -> Iterator[Delivery | None]:
        by = self._by
        context = QueueClaimContext[Any](
            self._queue.client,
            self._backend.claim_command(self._queue.lease_timeout, by.worker_id, by.max_attempts, takes=False),
            JSON,
            timeout_s=timeout_s,
            poll_s=POLL_S,
            auto_renew=True,
            renew_interval_s=None,
            max_hold_s=None,
            ack_on_success=False,
            release_on_error=True,
        )
        with context:
            yield None if context.claim is None else ClaimedDelivery(self._queue, self._backend, context.claim)

    @contextmanager
    def _taken(self, timeout_s: float) -> Iterator[Delivery | None]:
        """A message that is gone already."""
        store, worker_id = self._queue.client.store, self._by.worker_id
        command = self._backend.claim_command(self._queue.lease_timeout, worker_id, takes=True)
        messages, _ = claim_since(store, command, timeout_s, POLL_S)
        if messages and worker_id is not None:
            self._workers.increment((self._queue.name, "leases", worker_id))
        yield LooseDelivery(self._queue, claimed(messages[0], wall_offset_us(self._queue.client))) if messages else None

    @contextmanager
    def _got(self, timeout_s: float) -> Iterator[Delivery | None]:
        """What a subclass's `get_message` gives: held like any other, if it leased that message in the store."""
        started = self.now()
        message = self._methods.get(timeout_s)
        record = None if message is None else self._record_of(message)
        if message is None:
            yield None
        elif record is None:
            with self._methods.loose(message) as delivery:
                yield delivery
        else:
            with self._held(record, started) as claim:
                yield ClaimedDelivery(self._queue, self._backend, claim)

    @contextmanager
    def _held(self, record: Message, started: float) -> Iterator[QueueClaim[Any]]:
        """A claim on a message that is leased already, renewed while the context lasts."""
        client = self._queue.client
        hold = Hold(record.receipt, self._queue.lease_timeout, started, client.keepalive.now)
        claim = QueueClaim[Any](record, JSON, client, hold)
        holding = Holding(client.keepalive, hold)
        claim.keepalive = client.keepalive
        error: BaseException | None = None

        def settle() -> bool:
            claim.keepalive = None
            if isinstance(error, Exception):
                return (claim.fail(error=shown(error))).count == 1
            return error is None or (claim.release()).count == 1

        try:
            yield claim
        except BaseException as raised:
            error = raised
            holding.leave(error, settle)
            raise
        holding.leave(None, settle)

    def _record_of(self, message: QueueMessage) -> Message | None:
        if message.token is None or self._queue.takes:
            return None
        found = (self._queue.client.store.execute(Browse(message.queue, ids=[message.id]))).messages
        return found[0] if found and found[0].token == message.token else None

    @property
    def _workers(self) -> Dict[Any]:
        return Dict(WORKERS, client=self._queue.client)


Source = ClaimedMessages | ForeignMessages
"""Messages for one worker, one after the other."""


def source_of(queue: PersistentQueue[Any], worker_id: str | None, max_attempts: int | None) -> Source:
    """Where a worker gets the messages of a queue."""
    by = Claimer(worker_id, max_attempts)
    if isinstance(queue.backend, EngineBackend):
        return ClaimedMessages(queue, queue.backend, by)
    return ForeignMessages(queue, by)
