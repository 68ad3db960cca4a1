# Generated from src/holdfast/_async/flows/awaiting.py by tools/unasync.py; do not edit.
"""Waiting for the result of a job."""

import time
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

from msgspec import Raw, Struct, json

from holdfast._sync.flows.job_status import job_steps
from holdfast.codec import JSON, Codec, check_duration, encode_key
from holdfast.commands import Browse, Changes, Read, Together
from holdfast.commands.topics import dict_topic, queue_topic, watch_topic
from holdfast.errors import Compacted, JobCancelled, JobFailed, ResultMissing, ResultNotKept
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.workers.orders import results_of
from holdfast.workers.result_waits import Found, ResultWait, ResultWaits, waits_of
from holdfast.workers.running.settlements import failure_key

POLL_S = 1.0
"""How much a missed wake-up can cost, and a burial by the store itself, which writes no result."""

TURN_S: Final = 5.0
"""How often those who wait look whether one of them still reads: an interrupt may have ended the reader before it could leave."""

PAGE: Final = 100
"""How many jobs are looked at in one step, and events of the log of results."""

FEW: Final = 10
"""So many jobs are all looked at after a wake-up. Of more, the log says which have a result; all are looked at every `POLL_S`."""

NODE_POLL_S = 0.25
"""How often it is looked at a node: that its end was recorded wakes no one."""


class _Keyed(Struct):
    key: str = ""


_decode_keyed = json.Decoder(_Keyed).decode


class _Failure(Struct):
    state: str
    error: str | None = None


def result(store: Store, queue: str, message_id: str, codec: Codec, timeout_s: float) -> Any:
    """The result of a job, once it is there; waits for it so long at most, `math.inf` for ever.

    Raises `TimeoutError`, or, when there will never be one, `JobFailed`, `JobCancelled` or `ResultMissing`.
    """
    deadline = time.monotonic() + check_duration(timeout_s, "timeout_s", allow_inf=True)
    with waits_of(store, queue) as waits:
        wait = waits.join(message_id)
        try:
            # What a reader saw before this one joined, it told nobody, so the first look is its own.
            (_read(store, queue, waits, wait, deadline) if waits.reads(wait) else _look_for(store, queue, waits, [message_id]))
            while wait.found is None and (remaining_s := deadline - time.monotonic()) > 0:
                if waits.reads(wait):
                    _read(store, queue, waits, wait, deadline)
                else:
                    waits.waiters.wait(wait.mark, min(remaining_s, TURN_S))
        finally:
            waits.leave(wait)
    if wait.found is None:
        raise TimeoutError(f"job {message_id} of queue {queue!r} has no result yet")
    return codec.decode(_result(wait.found))


def _read(store: Store, queue: str, waits: ResultWaits, wait: ResultWait, deadline: float) -> None:
    """Look for what all wait for, and tell them, until this one is told or its time is over."""
    with store.mark(watch_topic(dict_topic(results_of(queue)))) as mark:
        while True:
            if waits.index is None or time.monotonic() >= waits.look_at:
                waits.index = _look_for_all(store, queue, waits)
                waits.look_at = time.monotonic() + POLL_S
            else:
                waits.index = _look_for_written(store, queue, waits, waits.index)
                if waits.index is None:
                    continue
            if wait.found is not None:
                mark.used()
                return
            if (remaining_s := deadline - time.monotonic()) <= 0:
                return
            store.wait(mark, remaining_s, None, POLL_S)


def _look_for_all(store: Store, queue: str, waits: ResultWaits) -> int | None:
    """Look at every job that is waited for; where the log of results goes on from there, if they are many."""
    ids = waits.ids()
    index = (store.execute(Read(results_of(queue), [], anchor=True))).index if len(ids) > FEW else None
    _look_for(store, queue, waits, ids)
    return index


def _look_for_written(store: Store, queue: str, waits: ResultWaits, index: int) -> int | None:
    """Look at the jobs whose results were written behind an event; where the log goes on, None if it does not say what was written."""
    written = set[str]()
    while True:
        try:
            page = store.execute(Changes(dict_topic(results_of(queue)), index, PAGE))
        except Compacted:
            return None
        written.update(_decode_keyed(event.data).key for event in page.events if event.event == "written")
        if page.upto <= index or page.upto >= page.latest:
            break
        index = page.upto
    # Whoever joins after this looks once for itself, and sees what was read here.
    _look_for(store, queue, waits, [message_id for message_id in waits.ids() if not written.isdisjoint(_keys(message_id))])
    return max(index, page.upto)


def _look_for(store: Store, queue: str, waits: ResultWaits, ids: Sequence[str]) -> None:
    for start in range(0, len(ids), PAGE):
        for message_id, found in (_look(store, queue, ids[start : start + PAGE])).items():
            waits.tell(message_id, found)


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
            ended = (_look(store, queue, [message_id])).get(message_id)
            if ended is not None:
                return JSON.decode(_result(ended))[name]
            mark.used()
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError(f"node {name!r} of the flow {message_id} has no result yet")
            store.wait(mark, remaining_s, None, NODE_POLL_S)


def _look(store: Store, queue: str, ids: Sequence[str]) -> dict[str, Found]:
    """What is known of these jobs by now: nothing of one that may have a result later."""
    keys = [key for message_id in ids for key in _keys(message_id)]
    # The messages first: what is gone by then has left its result.
    browsed, entries = store.execute(Together([Browse(queue, ids=ids), Read(results_of(queue), keys)]))
    if (browsed.more or entries.more) and len(ids) > 1:
        half = len(ids) // 2
        return _look(store, queue, ids[:half]) | _look(store, queue, ids[half:])
    kept: dict[str, Raw] = {entry.key: entry.value for entry in entries.entries}
    messages = {message.id: message for message in browsed.messages}
    found = {message_id: _found(queue, message_id, kept, messages.get(message_id)) for message_id in ids}
    return {message_id: each for message_id, each in found.items() if each is not None}


def _keys(message_id: str) -> tuple[str, str]:
    """Where the result of a job is kept, and why it has none."""
    return encode_key(message_id), failure_key(message_id)


def _found(queue: str, message_id: str, kept: Mapping[str, Raw], message: Message | None) -> Found | None:
    """What is known of one job, whose message is None once it has ended, or done if it is kept for a while."""
    if (result := kept.get(encode_key(message_id))) is not None:
        return result
    if (said := kept.get(failure_key(message_id))) is not None:
        return _failed(queue, message_id, json.decode(said, type=_Failure), is_there=message is not None and message.state != "done")
    if message is None:
        return ResultMissing(
            f"job {message_id} of queue {queue!r} is gone without a result: its worker keeps none (results=True keeps them), "
            "it has expired (keep_result_s=), or the job never existed"
        )
    if message.state == "done":
        reason = "its worker keeps none (results=True keeps them), or it has expired (keep_result_s=)"
        return ResultNotKept(f"job {message_id} of queue {queue!r} was done, and its result is not there: {reason}", reason)
    if message.state == "dead":
        return JobFailed(f"job {message_id} of queue {queue!r} is dead: {message.last_error or 'its worker died every time'}")
    return None


def _failed(queue: str, message_id: str, failure: _Failure, *, is_there: bool) -> Exception | None:
    if failure.state == "cancelled" and is_there:
        return None  # Somebody is about to cancel it.
    if failure.state == "done":
        reason = failure.error or ""
        return ResultNotKept(f"job {message_id} of queue {queue!r} was done, but its result could not be kept: {reason}", reason)
    kind = JobCancelled if failure.state == "cancelled" else JobFailed
    return kind(f"job {message_id} of queue {queue!r} has no result: {failure.error or failure.state}")


def _result(found: Found) -> Raw:
    """The stored result; raises why there is none."""
    if isinstance(found, Exception):
        raise copy(found)  # Others may raise the same one.
    return found
