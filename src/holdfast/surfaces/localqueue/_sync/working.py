# Generated from src/holdfast/surfaces/localqueue/_async/working.py by tools/unasync.py; do not edit.
"""A worker: each call handles one message of a queue."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from holdfast._sync.flows.claiming import claim_since
from holdfast._sync.flows.pausing import pause_until
from holdfast._sync.handles.claimed import QueueClaimContext
from holdfast._sync.handles.claims import QueueClaim
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.together import Together
from holdfast.clock import wall_us
from holdfast.codec import JSON
from holdfast.results import MISSING
from holdfast.surfaces.localqueue._sync.committing import Committing
from holdfast.surfaces.localqueue._sync.retrying import PersistentRetrying, delete
from holdfast.surfaces.localqueue.administering import WORKERS
from holdfast.surfaces.localqueue.attempts.awaiting import answer
from holdfast.surfaces.localqueue.attempts.defaults import chosen_store
from holdfast.surfaces.localqueue.attempts.settings import PersistentRetryExhausted
from holdfast.surfaces.localqueue.attempts.stores import URLAttemptStore
from holdfast.surfaces.localqueue.config import PersistentWorkerConfig, merged_retries
from holdfast.surfaces.localqueue.messages import error_text
from holdfast.surfaces.localqueue.pacing import Pace, is_permanent
from holdfast.surfaces.localqueue.queues import POLL_S, PersistentQueue

DEATHS = 5
"""After so many workers died of a message it is dead, where its worker gives no `max_tries`."""


HEARTBEAT_S = 1.0
"""A worker that is busy shows up no more often than this."""


NOTHING: Mapping[str, Any] = MappingProxyType({})

OnClaim = Callable[[QueueClaim[Any]], object]


def ignore(claim: object) -> None:
    """Take no notice of a claim."""
    del claim


class WorkerCalls:
    """Handles messages with one function, one a call.

    The lease is renewed while the handler, and the pauses between its tries, take. A message that is done is acknowledged together with
    what is kept of it; one whose tries are used up is dead-lettered or released; one whose worker dies comes back.
    """

    def __init__(
        self, queue: PersistentQueue[Any], handler: Callable[..., Any], config: PersistentWorkerConfig, worker_id: str | None
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._config = config
        self._worker_id = worker_id
        self._pace = Pace(config)
        self._shows_up_at = -math.inf
        self._retries = merged_retries(queue.retry_defaults, config.retry_kwargs)
        if {"key", "key_fn"} & {*self._retries}:
            raise ValueError("a worker retries under the id of the message: leave key= and key_fn= out")
        PersistentRetrying(**self._retries)  # Refused now rather than with the first message in hand.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for a message, handle it, and answer what the handler answers."""
        return self.handle_next(math.inf, args, kwargs)

    def handle_next(
        self, timeout_s: float, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = NOTHING, *, on_claim: OnClaim = ignore
    ) -> Any:
        """Handle a message that comes within so many seconds, and answer what the handler answers; MISSING if none comes.

        `on_claim` is told of it first.
        """
        client = self._queue.client
        self._show_up(client.keepalive.now())
        pause_until(client, self._pace.next_start_at(client.keepalive.now()))
        if self._queue.takes:
            return self._take(timeout_s, args, kwargs)
        context = QueueClaimContext[Any](
            client,
            self._queue.claim_command(self._worker_id, self._budget),
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
            if context.claim is None:
                return MISSING
            self._pace.started(client.keepalive.now())
            on_claim(context.claim)
            return self._handle(context.claim, args, kwargs)

    @property
    def _budget(self) -> int | None:
        """How many expired leases a message may have: who never dead-letters sets no limit."""
        if not self._config.dead_letter_on_failure:
            return None
        budget: int = self._retries.get("max_tries", DEATHS)
        return budget

    def _handle(self, claim: QueueClaim[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        committing = Committing(self._queue, claim)
        done_before = committing.begin()
        if done_before is not MISSING:
            with Together(self._queue.client) as step:
                step.ack(claim)
                committing.resume(step)
                self._note(step)
            committing.finish()
            return done_before
        retrying = self._retrying(claim)
        try:
            result = self._tried(claim, retrying, args, kwargs)
        except Exception as error:
            self._pace.failed(error, self._queue.client.keepalive.now())
            if not claim.lost:
                delete(retrying.attempts, claim.id)
                self._give_up(claim, committing, error)
            raise
        self._pace.succeeded()
        with Together(self._queue.client) as step:
            step.ack(claim)
            committing.succeed(step, result)
            self._note(step)
        committing.finish()
        return result

    def _tried(self, claim: QueueClaim[Any], retrying: PersistentRetrying, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What the handler answers, after as many tries as it takes."""
        try:
            return retrying(self._handler, claim.value, *args, **kwargs)
        except PersistentRetryExhausted as exhausted:
            if exhausted.key != claim.id or claim.failures:
                raise
        # Nobody failed since it was put or requeued: these attempts are of a life before, of which an import may tell.
        delete(retrying.attempts, claim.id)
        return retrying(self._handler, claim.value, *args, **kwargs)

    def _give_up(self, claim: QueueClaim[Any], committing: Committing, error: Exception) -> None:
        """Dead-letter or release, together with what is kept of the failure; what goes wrong here must not hide the error."""
        is_final = is_permanent(error) or self._config.dead_letter_on_failure
        try:
            with Together(self._queue.client) as step:
                committing.fail(step, error, is_final=is_final)
                self._note(step)
                if is_final:
                    step.bury(claim, error=error_text(error))
                else:
                    step.fail(claim, error=error_text(error), delay_s=self._config.release_delay)
        except Exception as failure:  # noqa: BLE001 - said beside the handler's own error, which is raised
            error.add_note(f"the failure of message {claim.id} of queue {claim.queue!r} could not be kept: {failure}")

    def _take(self, timeout_s: float, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Handle a message that is gone already: whatever becomes of it, it is not delivered again."""
        command = self._queue.claim_command(self._worker_id)
        messages, _ = claim_since(self._queue.client.store, command, timeout_s, POLL_S)
        if not messages:
            return MISSING
        self._pace.started(self._queue.client.keepalive.now())
        with Together(self._queue.client) as step:
            self._note(step)
        retrying = PersistentRetrying(**{**self._where, **self._retries, "key": messages[0].id})
        try:
            result = retrying(self._handler, JSON.decode(messages[0].value), *args, **kwargs)
        except Exception as error:
            self._pace.failed(error, self._queue.client.keepalive.now())
            delete(retrying.attempts, messages[0].id)
            raise
        self._pace.succeeded()
        return result

    def _retrying(self, claim: QueueClaim[Any]) -> PersistentRetrying:
        users = self._retries.get("before")

        def before(state: Any) -> None:
            # Between two tries the lease may have been lost: then the message is somebody else's.
            claim.check()
            if users is not None:
                answer(users(state))

        return PersistentRetrying(**{**self._where, **self._retries, "key": claim.id, "before": before})

    @property
    def _where(self) -> dict[str, Any]:
        """Where attempts are kept: as told, else as configured, else beside the queue."""
        if {"store", "store_path"} & {*self._retries}:
            return {}
        return {"store": chosen_store() or URLAttemptStore(self._queue.client)}

    def _show_up(self, now: float) -> None:
        """Tell whoever asks for the queue's stats that this worker is alive; often enough is enough."""
        if self._worker_id is not None and now >= self._shows_up_at:
            self._shows_up_at = now + HEARTBEAT_S
            workers = Dict[Any](WORKERS, client=self._queue.client)
            workers.put((self._queue.name, "seen", self._worker_id), wall_us() / 1_000_000)

    def _note(self, step: Together) -> None:
        """Count a lease that ends in this step."""
        if self._worker_id is not None:
            step.increment(WORKERS, (self._queue.name, "leases", self._worker_id))
