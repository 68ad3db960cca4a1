"""What is kept of an effectively-once message besides its acknowledgement: ledger, result, envelopes.

What is in the queue's own store goes into one atomic step with the acknowledgement. What is elsewhere, or in a store of the user's own,
is saved before that step, and a save that fails prevents it.
"""

import logging
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from holdfast._async.handles.together import AsyncTogether
from holdfast.clock import wall_s
from holdfast.codec import JSON, check_value_size
from holdfast.codec.limits import DEFAULT_LIMITS, Limits
from holdfast.commands import Move
from holdfast.results import MISSING, Missing
from holdfast.steps import is_same_store
from holdfast.surfaces.localqueue._async.records import load, save, write
from holdfast.surfaces.localqueue.engine_backend import EngineBackend
from holdfast.surfaces.localqueue.idempotency import IdempotencyRecord, IdempotencyStore
from holdfast.surfaces.localqueue.messages import QueueMessage, error_of, error_text
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue
from holdfast.surfaces.localqueue.policies.commits import (
    LOCAL_ATOMIC_COMMIT,
    NO_RESULT_POLICY,
    CommitPolicy,
    ResultPolicy,
    SagaCommit,
    TransactionalOutboxCommit,
    TwoPhaseCommit,
)
from holdfast.surfaces.localqueue.record_location import RecordLocation, fitting
from holdfast.surfaces.localqueue.results import ResultStore

ROOM_BYTES = 4096
"""What a record or an envelope needs besides the result in it, at most."""

_log = logging.getLogger("holdfast")


class AsyncCommit:
    """The commit of one message; without a dedupe key there is nothing to keep."""

    def __init__(self, queue: PersistentQueue[Any], message: QueueMessage) -> None:
        delivery: Any = queue.delivery_policy
        self._queue = queue
        self._message = message
        self._key = f"dedupe:{queue.name}:{message.dedupe_key}"
        self._ledger: IdempotencyStore | None = self._keyed(getattr(delivery, "idempotency_store", None))
        self._results: ResultPolicy = getattr(delivery, "result_policy", NO_RESULT_POLICY)
        self._policy: CommitPolicy = getattr(delivery, "commit_policy", LOCAL_ATOMIC_COMMIT)
        self._record: IdempotencyRecord | None = None
        self._rest: dict[str, Any] | None = None
        """What is to be committed in the second phase."""

    async def begin(self) -> Any | Missing:
        """The result of work that was done before, None where it was not kept; MISSING where it is still to be done.

        Where it was this very message that was done, its acknowledgement failed: `resume` then writes the envelopes again.
        """
        if self._ledger is None:
            return MISSING
        self._record = await self._load_record(self._ledger)
        if self._record is not None and self._record.status == "succeeded":
            return await self._stored(self._record) if self._results.returns_cached_result else None
        if self._record is None:
            self._record = IdempotencyRecord.pending()
            self._record.metadata.update(self._facts)
            await save(self._ledger, self._key, self._record)
        return MISSING

    async def resume(self, step: AsyncTogether | None) -> None:
        """Keep the envelopes of this message, if it was done before and yet not acknowledged; those of a duplicate are kept already."""
        record = self._record
        if record is not None and record.metadata.get("message_id") == self._message.id:
            await self._wrap(step, record.result_key, await self._stored(record))

    async def succeed(self, step: AsyncTogether | None, result: Any) -> None:
        """Keep what a success leaves, in the step or before it."""
        result_key, metadata = await self._keep_result(step, result)
        if self._ledger is not None and self._record is not None:
            metadata = {**self._facts, **metadata}
            plain = self._plain(step, result)
            if self._has_envelopes and not self._is_in(step, self._ledger) and plain is not None:
                # Should the envelope fail after this, a repetition finds the result here.
                metadata.setdefault("result", plain)
            done = IdempotencyRecord("succeeded", self._record.first_seen_at, wall_s(), result_key, metadata)
            await keep(self._queue, step, self._ledger, self._key, done)
        await self._wrap(step, result_key, self._plain(step, result))

    async def _wrap(self, step: AsyncTogether | None, result_key: str | None, result: Any) -> None:
        """Keep the envelopes that the policy asks for."""
        if self._message.dedupe_key is None:
            return
        about = {**self._facts, "dedupe_key": self._message.dedupe_key}
        envelope = {**about, "result_key": None if result_key == "inline" else result_key, "result": result}
        match self._policy:
            case TransactionalOutboxCommit(outbox_store=store) if store is not None:
                await keep(self._queue, step, store, f"outbox:{self._key}", envelope)
                self._relay(step, "deliver", f"outbox:{self._key}", envelope)
            case TwoPhaseCommit(prepare_store=first, commit_store=second):
                if first is not None:
                    await keep(self._queue, step, first, f"prepare:{self._key}", {**envelope, "phase": "prepare"})
                if second is not None:
                    self._rest = {**envelope, "phase": "commit"}
                    # Not at once: this worker is about to do it, and does unless it dies.
                    self._relay(step, "commit", f"commit:{self._key}", self._rest, delay_s=self._queue.lease_timeout)
            case SagaCommit(saga_store=store) if store is not None:
                shown = {} if result is None else {"result": result}
                await keep(self._queue, step, store, f"saga:forward:{self._key}", {**about, "phase": "forward", **shown})
            case _:
                pass

    async def finish(self) -> None:
        """Carry the second phase out, and take back what a success makes needless."""
        if self._rest is not None and isinstance(self._policy, TwoPhaseCommit):
            await keep(self._queue, None, self._policy.commit_store, f"commit:{self._key}", self._rest)
            await self._cancel(f"commit:{self._key}")
        if self._saga is not None and self._may_have_failed:
            await self._cancel(f"saga:compensate:{self._key}")

    async def fail(self, step: AsyncTogether | None, error: Exception, *, is_final: bool) -> None:
        """Keep what a failure leaves; a final one is handed to the relay to compensate."""
        told = error_of(error_text(error) or "")
        if self._ledger is not None and self._record is not None:
            metadata = {**self._facts, "last_error": told}
            failed = IdempotencyRecord("failed", self._record.first_seen_at, wall_s(), None, metadata)
            await keep(self._queue, step, self._ledger, self._key, failed)
        if self._saga is not None:
            envelope = {**self._facts, "dedupe_key": self._message.dedupe_key, "phase": "compensate", "error": told}
            await keep(self._queue, step, self._saga, f"saga:compensate:{self._key}", envelope)
            if is_final:
                self._relay(step, "compensate", f"saga:compensate:{self._key}", envelope)

    @property
    def _facts(self) -> dict[str, Any]:
        return {"queue": self._queue.name, "message_id": self._message.id}

    @property
    def _saga(self) -> ResultStore | None:
        store: ResultStore | None = self._keyed(getattr(self._policy, "saga_store", None))
        return store

    @property
    def _has_envelopes(self) -> bool:
        stores = ("outbox_store", "prepare_store", "commit_store", "saga_store")
        return any(getattr(self._policy, name, None) is not None for name in stores)

    @property
    def _may_have_failed(self) -> bool:
        return self._ledger is None or (self._record is not None and self._record.status == "failed")

    def _keyed(self, store: Any) -> Any:
        return store if self._message.dedupe_key is not None else None

    async def _stored(self, record: IdempotencyRecord) -> Any | None:
        store = getattr(self._results, "result_store", None)
        if record.result_key in (None, "inline") or store is None:
            return record.metadata.get("result")
        return await load(store, str(record.result_key))

    async def _keep_result(self, step: AsyncTogether | None, result: Any) -> tuple[str | None, dict[str, Any]]:
        """Under which key the result is kept, and what the ledger says of it; one that cannot be kept is no reason to do it all again."""
        store = self._keyed(getattr(self._results, "result_store", None))
        if not self._results.stores_result or (self._ledger is None and store is None):
            return None, {}
        try:
            if store is None:
                return "inline", {"result": _copied(result, self._ledger) if isinstance(self._ledger, RecordLocation) else result}
            if isinstance(store, RecordLocation):
                # Now: in the step it would be met with the acknowledgement, and prevent that, too.
                check_value_size(JSON.encode(result), store.client.async_store.limits)
            await keep(self._queue, step, store, self._key, result)
        except (TypeError, ValueError) as error:
            _log.warning(
                "the result of message %s of %s is not kept, and a repetition gets None: %s", self._message.id, self._queue.name, error
            )
            return None, {"result_error": str(error)}
        return self._key, {}

    def _plain(self, step: AsyncTogether | None, result: Any) -> Any:
        """The result where an envelope can carry it, else None."""
        try:
            _check_room(result, DEFAULT_LIMITS if step is None else self._queue.client.async_store.limits)
        except (TypeError, ValueError):
            return None
        return result

    async def _load_record(self, ledger: IdempotencyStore) -> IdempotencyRecord | None:
        """What is known of the message's key; under the plain key a user, or localqueue itself, may have marked it as done."""
        own: IdempotencyRecord | None = await load(ledger, self._key)
        if own is not None and own.status == "succeeded":
            return own
        plain: IdempotencyRecord | None = await load(ledger, str(self._message.dedupe_key))
        is_done = plain is not None and plain.status == "succeeded" and plain.metadata.get("queue", self._queue.name) == self._queue.name
        return plain if is_done else own

    def _is_in(self, step: AsyncTogether | None, ledger: IdempotencyStore) -> bool:
        return step is not None and is_beside(self._queue, ledger)

    def _relay(self, step: AsyncTogether | None, do: str, key: str, envelope: dict[str, Any], delay_s: float = 0.0) -> None:
        # Without a step there is no relay, as in localqueue: what reads the envelopes is the user's.
        if step is not None:
            leave_to_relay(self._queue, step, do, key, envelope, delay_s=delay_s)

    async def _cancel(self, key: str) -> None:
        """Take back what was left to the relay, by this delivery or one before."""
        if not isinstance(self._queue.backend, EngineBackend):
            return
        await self._queue.client.async_store.execute(Move(relay_queue(self._queue), "gone", [fitting(key)]))


async def keep(queue: PersistentQueue[Any], step: AsyncTogether | None, store: Any, key: str, record: Any) -> None:
    """Save under a key: in the step, if the store is that of the queue, else at once."""
    if step is not None and is_beside(queue, store):
        write(step, store, key, record)
    elif store is not None:
        await save(store, key, record)


def is_beside(queue: PersistentQueue[Any], store: Any) -> bool:
    """Whether records of this store can be part of a step of the queue."""
    return isinstance(store, RecordLocation) and is_same_store(store.client, queue.client)


def leave_to_relay(
    queue: PersistentQueue[Any], step: AsyncTogether, do: str, key: str, envelope: dict[str, Any], *, delay_s: float = 0.0
) -> None:
    """Note in the step what is to be done with an envelope."""
    work = {"do": do, "key": key, "envelope": envelope}
    step.put(relay_queue(queue), work, id=fitting(key), key=fitting(key), if_present="update", delay_s=delay_s)


def relay_queue(queue: PersistentQueue[Any]) -> str:
    """The queue of what is left to be delivered, committed or compensated; users' queues have no colon."""
    return f"{queue.name}:relay"


def _copied(result: Any, ledger: RecordLocation[Any]) -> Any:
    """The result as it will be read; ValueError or TypeError where the ledger cannot keep it."""
    return JSON.decode(_check_room(result, ledger.client.async_store.limits))


def _check_room(result: Any, limits: Limits) -> Raw:
    """The result encoded, refused where a record of it would be too large."""
    encoded = JSON.encode(result)
    check_value_size(encoded, replace(limits, value_bytes=limits.value_bytes - ROOM_BYTES))
    return encoded
