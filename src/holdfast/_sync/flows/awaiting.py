# Generated from src/holdfast/_async/flows/awaiting.py by tools/unasync.py; do not edit.
"""Waiting for the result of a job."""

import time
from typing import Any

from msgspec import Raw, Struct, json

from holdfast._sync.flows.job_status import job_steps
from holdfast.codec import JSON, Codec, check_duration, encode_key
from holdfast.commands import Browse, Read, Together
from holdfast.commands.topics import dict_topic, queue_topic, watch_topic
from holdfast.errors import JobCancelled, JobFailed, ResultMissing, ResultNotKept
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.workers.orders import results_of
from holdfast.workers.running.settlements import failure_key

POLL_S = 1.0
"""How much a missed wake-up can cost, and a burial by the store itself, which writes no result."""


NODE_POLL_S = 0.25
"""How often it is looked at a node: that its end was recorded wakes no one."""


class _Failure(Struct):
    state: str
    error: str | None = None


def result(store: Store, queue: str, message_id: str, codec: Codec, timeout_s: float) -> Any:
    """The result of a job, once it is there; waits for it so long at most, `math.inf` for ever.

    Raises `TimeoutError`, or, when there will never be one, `JobFailed`, `JobCancelled` or `ResultMissing`.
    """
    deadline = time.monotonic() + check_duration(timeout_s, "timeout_s", allow_inf=True)
    with store.mark(watch_topic(dict_topic(results_of(queue)))) as mark:
        while True:
            found = _look(store, queue, message_id)
            if found is not None:
                mark.used()
                return codec.decode(found)
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError(f"job {message_id} of queue {queue!r} has no result yet")
            store.wait(mark, remaining_s, None, POLL_S)


def node_result(store: Store, queue: str, message_id: str, node: tuple[int, str], timeout_s: float) -> Any:
    """The result of a node of a flow, given by number and name, as plain data; waits for it like `result`, and raises the same."""
    deadline = time.monotonic() + check_duration(timeout_s, "timeout_s", allow_inf=True)
    number, name = node
    with store.mark(watch_topic(queue_topic(queue))) as mark:
        while True:
            steps = job_steps(store, queue, message_id)
            found = next((step for step in steps if step.number == number and step.child is not None), None)
            if found is not None and found.state == "done":
                return found.result
            if found is not None and found.state == "failed":
                raise JobFailed(f"node {name!r} of the flow {message_id} failed: {found.error}")
            ended = _look(store, queue, message_id)
            if ended is not None:
                return JSON.decode(ended)[name]
            mark.used()
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError(f"node {name!r} of the flow {message_id} has no result yet")
            store.wait(mark, remaining_s, None, NODE_POLL_S)


def _look(store: Store, queue: str, message_id: str) -> Raw | None:
    """The stored result, None while there may be one later."""
    keys = [encode_key(message_id), failure_key(message_id)]
    # The message first: what is gone by then has left its result.
    together = Together([Browse(queue, ids=[message_id]), Read(results_of(queue), keys)])
    browsed, entries = store.execute(together)
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
