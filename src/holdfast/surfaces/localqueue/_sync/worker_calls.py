# Generated from src/holdfast/surfaces/localqueue/_async/worker_calls.py by tools/unasync.py; do not edit.
"""A worker: each call handles one message of a queue."""

import math
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast._sync.handles.together import Together
from holdfast.results import MISSING
from holdfast.surfaces.localqueue._sync.commit import Commit
from holdfast.surfaces.localqueue._sync.delivery import Delivery
from holdfast.surfaces.localqueue._sync.message_source import source_of
from holdfast.surfaces.localqueue._sync.records import delete
from holdfast.surfaces.localqueue._sync.retrying import PersistentRetrying
from holdfast.surfaces.localqueue.attempts.awaiting import answer
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


class WorkerCalls:
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
        PersistentRetrying(**self._retries)  # Refused now rather than with the first message in hand.
        self._source = source_of(queue, worker_id, self._budget)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for a message, handle it, and return what the handler returns."""
        return self.handle_next(math.inf, args, kwargs)

    def handle_next(
        self, timeout_s: float, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = NOTHING, *, on_message: OnMessage = ignore
    ) -> Any:
        """Handle a message that comes within so many seconds, and return what the handler returns; MISSING if none comes.

        `on_message` is called with it first.
        """
        self._source.show_up()
        self._source.pause_until(self._pace.next_start_at(self._source.now()))
        with self._source.next(timeout_s) as delivery:
            if delivery is None:
                return MISSING
            self._pace.started(self._source.now())
            on_message(delivery.message)
            handle = self._handle_gone if self._queue.takes else self._handle
            return handle(delivery, args, kwargs)

    @property
    def _budget(self) -> int | None:
        """How many expired leases a message may have: who never dead-letters sets no limit."""
        if not self._config.dead_letter_on_failure:
            return None
        budget: int = self._retries.get("max_tries", DEATHS)
        return budget

    def _handle(self, delivery: Delivery, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        commit = Commit(self._queue, delivery.message)
        done_before = commit.begin()
        if done_before is not MISSING:
            with delivery.ending() as step:
                commit.resume(step)
                self._note(step)
                delivery.ack()
            commit.finish()
            return done_before
        retrying = self._retrying(delivery)
        try:
            result = self._tried(delivery, retrying, args, kwargs)
        except Exception as error:
            self._pace.failed(error, self._source.now())
            if not delivery.is_lost():
                delete(retrying.attempts, delivery.message.id)
                self._give_up(delivery, commit, error)
            raise
        self._pace.succeeded()
        with delivery.ending() as step:
            commit.succeed(step, result)
            self._note(step)
            delivery.ack()
        commit.finish()
        return result

    def _handle_gone(self, delivery: Delivery, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Handle a message that is gone already: whatever becomes of it, it is not delivered again."""
        retrying = PersistentRetrying(**{**self._where, **self._retries, "key": delivery.message.id})
        try:
            result = retrying(self._handler, delivery.message.value, *args, **kwargs)
        except Exception as error:
            self._pace.failed(error, self._source.now())
            delete(retrying.attempts, delivery.message.id)
            raise
        self._pace.succeeded()
        return result

    def _tried(self, delivery: Delivery, retrying: PersistentRetrying, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What the handler returns, after as many tries as it takes."""
        message = delivery.message
        try:
            return retrying(self._handler, message.value, *args, **kwargs)
        except PersistentRetryExhausted as exhausted:
            if exhausted.key != message.id or delivery.failures:
                raise
        # Nobody failed since it was put or requeued: these attempts are of a life before, of which an import may tell.
        delete(retrying.attempts, message.id)
        return retrying(self._handler, message.value, *args, **kwargs)

    def _give_up(self, delivery: Delivery, commit: Commit, error: Exception) -> None:
        """Dead-letter or release, together with what is kept of the failure; what goes wrong here must not hide the error."""
        is_final = is_permanent(error) or self._config.dead_letter_on_failure
        try:
            with delivery.ending() as step:
                commit.fail(step, error, is_final=is_final)
                self._note(step)
                if is_final:
                    delivery.dead_letter(error)
                else:
                    delivery.release(self._config.release_delay, error)
        except Exception as failure:  # noqa: BLE001 - said beside the handler's own error, which is raised
            message = delivery.message
            error.add_note(f"the failure of message {message.id} of queue {message.queue!r} could not be kept: {failure}")

    def _retrying(self, delivery: Delivery) -> PersistentRetrying:
        users = self._retries.get("before")

        def before(state: Any) -> None:
            # Between two tries the lease may have been lost: then the message is somebody else's.
            delivery.check()
            if users is not None:
                answer(users(state))

        return PersistentRetrying(**{**self._where, **self._retries, "key": delivery.message.id, "before": before})

    @property
    def _where(self) -> dict[str, Any]:
        """Where attempts are kept: as told, else as configured, else beside the queue if that is in a store of ours."""
        if {"store", "store_path"} & {*self._retries}:
            return {}
        is_ours = isinstance(self._queue.backend, EngineBackend)
        return {"store": chosen_store() or URLAttemptStore(self._queue.client if is_ours else None)}

    def _note(self, step: Together | None) -> None:
        """Count a lease that ends in this step."""
        if step is not None and self._worker_id is not None:
            step.increment(WORKERS, (self._queue.name, "leases", self._worker_id))


def persistent_worker(
    queue: PersistentQueue[Any],
    config: PersistentWorkerConfig | None = None,
    *,
    worker_id: str | None = None,
    dead_letter_on_failure: bool | UnsetType = UNSET,
    dead_letter_on_exhaustion: bool | UnsetType = UNSET,
    release_delay: float | UnsetType = UNSET,
    **retry_kwargs: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
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

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        calls = WorkerCalls(queue, handler, resolved, worker_id)

        @wraps(handler)
        def work(*args: Any, **kwargs: Any) -> Any:
            return calls(*args, **kwargs)

        return work

    return decorate
