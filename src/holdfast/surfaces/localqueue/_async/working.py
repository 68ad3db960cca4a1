"""A worker: each call handles one message of a queue."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from holdfast._async.flows.claiming import claim_since
from holdfast._async.flows.pausing import pause_until
from holdfast._async.handles.claimed import AsyncQueueClaimContext
from holdfast._async.handles.claims import AsyncQueueClaim
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.together import AsyncTogether
from holdfast.clock import wall_us
from holdfast.codec import JSON
from holdfast.results import MISSING
from holdfast.surfaces.localqueue._async.committing import AsyncCommitting
from holdfast.surfaces.localqueue._async.retrying import PersistentAsyncRetrying, delete
from holdfast.surfaces.localqueue.administering import WORKERS
from holdfast.surfaces.localqueue.attempts.awaiting import async_answer
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

OnClaim = Callable[[AsyncQueueClaim[Any]], object]


def ignore(claim: object) -> None:
    """Take no notice of a claim."""
    del claim


class AsyncWorkerCalls:
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
        PersistentAsyncRetrying(**self._retries)  # Refused now rather than with the first message in hand.

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for a message, handle it, and answer what the handler answers."""
        return await self.handle_next(math.inf, args, kwargs)

    async def handle_next(
        self, timeout_s: float, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = NOTHING, *, on_claim: OnClaim = ignore
    ) -> Any:
        """Handle a message that comes within so many seconds, and answer what the handler answers; MISSING if none comes.

        `on_claim` is told of it first.
        """
        client = self._queue.client
        await self._show_up(client.keepalive.now())
        await pause_until(client, self._pace.next_start_at(client.keepalive.now()))
        if self._queue.takes:
            return await self._take(timeout_s, args, kwargs)
        context = AsyncQueueClaimContext[Any](
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
        async with context:
            if context.claim is None:
                return MISSING
            self._pace.started(client.keepalive.now())
            on_claim(context.claim)
            return await self._handle(context.claim, args, kwargs)

    @property
    def _budget(self) -> int | None:
        """How many expired leases a message may have: who never dead-letters sets no limit."""
        if not self._config.dead_letter_on_failure:
            return None
        budget: int = self._retries.get("max_tries", DEATHS)
        return budget

    async def _handle(self, claim: AsyncQueueClaim[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        committing = AsyncCommitting(self._queue, claim)
        done_before = await committing.begin()
        if done_before is not MISSING:
            async with AsyncTogether(self._queue.client) as step:
                step.ack(claim)
                await committing.resume(step)
                self._note(step)
            await committing.finish()
            return done_before
        retrying = self._retrying(claim)
        try:
            result = await self._tried(claim, retrying, args, kwargs)
        except Exception as error:
            self._pace.failed(error, self._queue.client.keepalive.now())
            if not claim.lost:
                await delete(retrying.attempts, claim.id)
                await self._give_up(claim, committing, error)
            raise
        self._pace.succeeded()
        async with AsyncTogether(self._queue.client) as step:
            step.ack(claim)
            await committing.succeed(step, result)
            self._note(step)
        await committing.finish()
        return result

    async def _tried(
        self, claim: AsyncQueueClaim[Any], retrying: PersistentAsyncRetrying, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What the handler answers, after as many tries as it takes."""
        try:
            return await retrying(self._handler, claim.value, *args, **kwargs)
        except PersistentRetryExhausted as exhausted:
            if exhausted.key != claim.id or claim.failures:
                raise
        # Nobody failed since it was put or requeued: these attempts are of a life before, of which an import may tell.
        await delete(retrying.attempts, claim.id)
        return await retrying(self._handler, claim.value, *args, **kwargs)

    async def _give_up(self, claim: AsyncQueueClaim[Any], committing: AsyncCommitting, error: Exception) -> None:
        """Dead-letter or release, together with what is kept of the failure; what goes wrong here must not hide the error."""
        is_final = is_permanent(error) or self._config.dead_letter_on_failure
        try:
            async with AsyncTogether(self._queue.client) as step:
                await committing.fail(step, error, is_final=is_final)
                self._note(step)
                if is_final:
                    step.bury(claim, error=error_text(error))
                else:
                    step.fail(claim, error=error_text(error), delay_s=self._config.release_delay)
        except Exception as failure:  # noqa: BLE001 - said beside the handler's own error, which is raised
            error.add_note(f"the failure of message {claim.id} of queue {claim.queue!r} could not be kept: {failure}")

    async def _take(self, timeout_s: float, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Handle a message that is gone already: whatever becomes of it, it is not delivered again."""
        command = self._queue.claim_command(self._worker_id)
        messages, _ = await claim_since(self._queue.client.async_store, command, timeout_s, POLL_S)
        if not messages:
            return MISSING
        self._pace.started(self._queue.client.keepalive.now())
        async with AsyncTogether(self._queue.client) as step:
            self._note(step)
        retrying = PersistentAsyncRetrying(**{**self._where, **self._retries, "key": messages[0].id})
        try:
            result = await retrying(self._handler, JSON.decode(messages[0].value), *args, **kwargs)
        except Exception as error:
            self._pace.failed(error, self._queue.client.keepalive.now())
            await delete(retrying.attempts, messages[0].id)
            raise
        self._pace.succeeded()
        return result

    def _retrying(self, claim: AsyncQueueClaim[Any]) -> PersistentAsyncRetrying:
        users = self._retries.get("before")

        async def before(state: Any) -> None:
            # Between two tries the lease may have been lost: then the message is somebody else's.
            claim.check()
            if users is not None:
                await async_answer(users(state))

        return PersistentAsyncRetrying(**{**self._where, **self._retries, "key": claim.id, "before": before})

    @property
    def _where(self) -> dict[str, Any]:
        """Where attempts are kept: as told, else as configured, else beside the queue."""
        if {"store", "store_path"} & {*self._retries}:
            return {}
        return {"store": chosen_store() or URLAttemptStore(self._queue.client)}

    async def _show_up(self, now: float) -> None:
        """Tell whoever asks for the queue's stats that this worker is alive; often enough is enough."""
        if self._worker_id is not None and now >= self._shows_up_at:
            self._shows_up_at = now + HEARTBEAT_S
            workers = AsyncDict[Any](WORKERS, client=self._queue.client)
            await workers.put((self._queue.name, "seen", self._worker_id), wall_us() / 1_000_000)

    def _note(self, step: AsyncTogether) -> None:
        """Count a lease that ends in this step."""
        if self._worker_id is not None:
            step.increment(WORKERS, (self._queue.name, "leases", self._worker_id))
