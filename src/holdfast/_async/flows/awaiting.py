"""Waiting for the result of a job."""

import time
from typing import Any

from msgspec import Raw, Struct, json

from holdfast.codec import Codec, check_duration, encode_key
from holdfast.commands import Browse, Read, Together
from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.errors import JobCancelled, JobFailed, ResultMissing, ResultNotKept
from holdfast.records import Message
from holdfast.stores import AsyncStore
from holdfast.workers.orders import results_of
from holdfast.workers.running.settlements import failure_key

POLL_S = 1.0
"""How much a missed wake-up can cost, and a burial by the store itself, which writes no result."""


class _Failure(Struct):
    state: str
    error: str | None = None


async def result(store: AsyncStore, queue: str, message_id: str, codec: Codec, timeout_s: float) -> Any:
    """The result of a job, once it is there; waits for it so long at most, `math.inf` for ever.

    Raises `TimeoutError`, or, when there will never be one, `JobFailed`, `JobCancelled` or `ResultMissing`.
    """
    deadline = time.monotonic() + check_duration(timeout_s, "timeout_s", allow_inf=True)
    with store.mark(watch_topic(dict_topic(results_of(queue)))) as mark:
        while True:
            found = await _look(store, queue, message_id)
            if found is not None:
                mark.used()
                return codec.decode(found)
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError(f"job {message_id} of queue {queue!r} has no result yet")
            await store.wait(mark, remaining_s, None, POLL_S)


async def _look(store: AsyncStore, queue: str, message_id: str) -> Raw | None:
    """The stored result, None while there may be one later."""
    keys = [encode_key(message_id), failure_key(message_id)]
    # The message first: what is gone by then has left its result.
    together = Together([Browse(queue, ids=[message_id]), Read(results_of(queue), keys)])
    browsed, entries = await store.execute(together)
    found: dict[str, Raw] = {entry.key: entry.value for entry in entries.entries}
    if keys[0] in found:
        return found[keys[0]]
    if keys[1] in found:
        _refuse_failed(queue, message_id, json.decode(found[keys[1]], type=_Failure), is_there=bool(browsed.messages))
    else:
        _refuse_dead(queue, message_id, browsed.messages)
    return None


def _refuse_failed(queue: str, message_id: str, failure: _Failure, *, is_there: bool) -> None:
    if failure.state == "cancelled" and is_there:
        return  # Somebody is about to cancel it.
    if failure.state == "done":
        reason = failure.error or ""
        raise ResultNotKept(f"job {message_id} of queue {queue!r} was done, but its result could not be kept: {reason}", reason)
    kind = JobCancelled if failure.state == "cancelled" else JobFailed
    raise kind(f"job {message_id} of queue {queue!r} has no result: {failure.error or failure.state}")


def _refuse_dead(queue: str, message_id: str, messages: list[Message]) -> None:
    if not messages:
        raise ResultMissing(
            f"job {message_id} of queue {queue!r} is gone without a result: its worker keeps none (results=True keeps them), "
            "its result has expired, or the job never existed"
        )
    if messages[0].state == "dead":
        raise JobFailed(f"job {message_id} of queue {queue!r} is dead: {messages[0].last_error or 'its worker died every time'}")
