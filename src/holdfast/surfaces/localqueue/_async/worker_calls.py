"""A worker: each call handles one message of a queue."""

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast._async.handles.together import AsyncTogether
from holdfast.results import MISSING
from holdfast.surfaces.localqueue._async.commit import AsyncCommit
from holdfast.surfaces.localqueue._async.delivery import AsyncDelivery
from holdfast.surfaces.localqueue._async.message_source import source_of
from holdfast.surfaces.localqueue._async.records import delete
from holdfast.surfaces.localqueue._async.retrying import PersistentAsyncRetrying
from holdfast.surfaces.localqueue.attempts.awaiting import async_answer
from holdfast.surfaces.localqueue.attempts.default_store import chosen_store
from holdfast.surfaces.localqueue.attempts.settings import PersistentRetryExhausted
from holdfast.surfaces.localqueue.attempts.stores import URLAttemptStore
from holdfast.surfaces.localqueue.engine_backend import WORKERS, EngineBackend
from holdfast.surfaces.localqueue.messages import QueueMessage
from holdfast.surfaces.localqueue.pace import Pace, is_permanent
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue
from holdfast.surfaces.localqueue.worker_config import PersistentWorkerConfig, merged_retries

DEATHS = 5
"""After so many workers died of a message it is dead, where its worker gives no `max_tries`."""


NOTHING: Mapping[str, Any] = MappingProxyType({})

OnMessage = Callable[[QueueMessage], object]


def ignore(message: object) -> None:
    """Take no notice of a message."""
    del message


class AsyncWorkerCalls:
    """Handles messages with one function, one per call.

    The lease is renewed while the handler, and the pauses between its tries, take. A message that is done is acknowledged together with
    what is kept of it; one whose tries are used up is dead-lettered or released; one whose worker dies comes back. The methods of the queue
    get and end it, also where a subclass overrides them.
    """

    def __init__(
        self, queue: PersistentQueue[Any], handler: Callable[..., Any], config: PersistentWorkerConfig, worker_id: str | None
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._config = config
        self._worker_id = worker_id
        self._pace = Pace(config)
        self._retries = merged_retries(queue.retry_defaults, config.retry_kwargs)
        if {"key", "key_fn"} & {*self._retries}:
            raise ValueError("a worker retries under the id of the message: leave key= and key_fn= out")
        PersistentAsyncRetrying(**self._retries)  # Refused now rather than with the first message in hand.
        self._source = source_of(queue, worker_id, self._budget)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for a message, handle it, and return what the handler returns."""
        return await self.handle_next(math.inf, args, kwargs)

    async def handle_next(
        self, timeout_s: float, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = NOTHING, *, on_message: OnMessage = ignore
    ) -> Any:
        """Handle a message that comes within so many seconds, and return what the handler returns; MISSING if none comes.

        `on_message` is called with it first.
        """
        await self._source.show_up()
        await self._source.pause_until(self._pace.next_start_at(self._source.now()))
        async with self._source.next(timeout_s) as delivery:
            if delivery is None:
                return MISSING
            self._pace.started(self._source.now())
            on_message(delivery.message)
            handle = self._handle_gone if self._queue.takes else self._handle
            return await handle(delivery, args, kwargs)

    @property
    def _budget(self) -> int | None:
        """How many expired leases a message may have: who never dead-letters sets no limit."""
        if not self._config.dead_letter_on_failure:
            return None
        budget: int = self._retries.get("max_tries", DEATHS)
        return budget

    async def _handle(self, delivery: AsyncDelivery, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        commit = AsyncCommit(self._queue, delivery.message)
        done_before = await commit.begin()
        if done_before is not MISSING:
            async with delivery.ending() as step:
                await commit.resume(step)
                self._note(step)
                await delivery.ack()
            await commit.finish()
            return done_before
        retrying = self._retrying(delivery)
        try:
            result = await self._tried(delivery, retrying, args, kwargs)
        except Exception as error:
            self._pace.failed(error, self._source.now())
            if not await delivery.is_lost():
                await delete(retrying.attempts, delivery.message.id)
                await self._give_up(delivery, commit, error)
            raise
        self._pace.succeeded()
        async with delivery.ending() as step:
            await commit.succeed(step, result)
            self._note(step)
            await delivery.ack()
        await commit.finish()
        return result

    async def _handle_gone(self, delivery: AsyncDelivery, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Handle a message that is gone already: whatever becomes of it, it is not delivered again."""
        retrying = PersistentAsyncRetrying(**{**self._where, **self._retries, "key": delivery.message.id})
        try:
            result = await retrying(self._handler, delivery.message.value, *args, **kwargs)
        except Exception as error:
            self._pace.failed(error, self._source.now())
            await delete(retrying.attempts, delivery.message.id)
            raise
        self._pace.succeeded()
        return result

    async def _tried(
        self, delivery: AsyncDelivery, retrying: PersistentAsyncRetrying, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What the handler returns, after as many tries as it takes."""
        message = delivery.message
        try:
            return await retrying(self._handler, message.value, *args, **kwargs)
        except PersistentRetryExhausted as exhausted:
            if exhausted.key != message.id or delivery.failures:
                raise
        # Nobody failed since it was put or requeued: these attempts are of a life before, of which an import may tell.
        await delete(retrying.attempts, message.id)
        return await retrying(self._handler, message.value, *args, **kwargs)

    async def _give_up(self, delivery: AsyncDelivery, commit: AsyncCommit, error: Exception) -> None:
        """Dead-letter or release, together with what is kept of the failure; what goes wrong here must not hide the error."""
        is_final = is_permanent(error) or self._config.dead_letter_on_failure
        try:
            async with delivery.ending() as step:
                await commit.fail(step, error, is_final=is_final)
                self._note(step)
                if is_final:
                    await delivery.dead_letter(error)
                else:
                    await delivery.release(self._config.release_delay, error)
        except Exception as failure:  # noqa: BLE001 - said beside the handler's own error, which is raised
            message = delivery.message
            error.add_note(f"the failure of message {message.id} of queue {message.queue!r} could not be kept: {failure}")

    def _retrying(self, delivery: AsyncDelivery) -> PersistentAsyncRetrying:
        users = self._retries.get("before")

        async def before(state: Any) -> None:
            # Between two tries the lease may have been lost: then the message is somebody else's.
            await delivery.check()
            if users is not None:
                await async_answer(users(state))

        return PersistentAsyncRetrying(**{**self._where, **self._retries, "key": delivery.message.id, "before": before})

    @property
    def _where(self) -> dict[str, Any]:
        """Where attempts are kept: as told, else as configured, else beside the queue if that is in a store of ours."""
        if {"store", "store_path"} & {*self._retries}:
            return {}
        is_ours = isinstance(self._queue.backend, EngineBackend)
        return {"store": chosen_store() or URLAttemptStore(self._queue.client if is_ours else None)}

    def _note(self, step: AsyncTogether | None) -> None:
        """Count a lease that ends in this step."""
        if step is not None and self._worker_id is not None:
            step.increment(WORKERS, (self._queue.name, "leases", self._worker_id))


def persistent_async_worker(
    queue: PersistentQueue[Any],
    config: PersistentWorkerConfig | None = None,
    *,
    worker_id: str | None = None,
    dead_letter_on_failure: bool | UnsetType = UNSET,
    dead_letter_on_exhaustion: bool | UnsetType = UNSET,
    release_delay: float | UnsetType = UNSET,
    **retry_kwargs: Any,
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]:
    """Make a decorator: each call of the decorated function waits for a message and handles it with its value as first argument.

    What is given here wins over `config`, and that over the queue's retry defaults. The other options are those of
    `PersistentWorkerConfig`. A task that is cancelled gives its message back.
    """
    resolved = (config or queue.build_worker_config()).with_overrides(
        dead_letter_on_failure=dead_letter_on_failure,
        dead_letter_on_exhaustion=dead_letter_on_exhaustion,
        release_delay=release_delay,
        **retry_kwargs,
    )

    def decorate(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        calls = AsyncWorkerCalls(queue, handler, resolved, worker_id)

        @wraps(handler)
        async def work(*args: Any, **kwargs: Any) -> Any:
            return await calls(*args, **kwargs)

        return work

    return decorate
