# Generated from src/holdfast/_async/flows/job_status.py by tools/unasync.py; do not edit.
"""What became of a job, as one look at its message, its result and its report; and another chance for a dead one."""

from typing import Any

from msgspec import Raw, json

from holdfast.codec import JSON, encode_key
from holdfast.commands import Browse, Change, Move, Read, Together, Write
from holdfast.records import Message
from holdfast.results import JobState, JobStatus, wall_time
from holdfast.stores import Store
from holdfast.workers.handlers.task_names import named_in
from holdfast.workers.orders import progress_of, results_of
from holdfast.workers.running.settlements import failure_key


def job_status(store: Store, queue: str, message_id: str) -> JobStatus:
    """How a job is at this moment."""
    key, failed_key = encode_key(message_id), failure_key(message_id)
    looks = Together([Browse(queue, ids=[message_id]), Read(results_of(queue), [key, failed_key]), Read(progress_of(queue), [key])])
    browsed, results, reports = store.execute(looks)
    progress = JSON.decode(reports.entries[0].value) if reports.entries else None
    if browsed.messages:
        return _living(browsed.messages[0], browsed.now, store.wall_offset_us(), progress)
    kept = {entry.key: entry.value for entry in results.entries}
    state, error = _ended(kept.get(key), kept.get(failed_key))
    return JobStatus(state, queue, message_id, error=error)


def retry(store: Store, queue: str, message_id: str) -> bool:
    """Redrive a job if it is dead, and forget that it was; False if it is not."""
    found = (store.execute(Browse(queue, ids=[message_id]))).messages
    if not found or found[0].state != "dead":
        return False
    forget = Write(results_of(queue), [Change(failure_key(message_id), "delete")])
    moved, _ = store.execute(Together([Move(queue, "ready", [message_id]), forget]))
    return bool(moved.ids)


def _living(message: Message, now: int, offset_us: int, progress: Any) -> JobStatus:
    is_held = message.held_at(now)
    return JobStatus(
        _state(message, now),
        message.queue,
        message.id,
        task=named_in(message.metadata).task,
        attempts=message.attempts,
        failures=message.failures,
        enqueued_at=wall_time(message.created_at, offset_us),
        started_at=wall_time(message.since, offset_us) if message.attempts else None,
        finished_at=wall_time(message.dead_at, offset_us),
        due_at=wall_time(message.position, offset_us),
        worker=message.holder if is_held else None,
        progress=progress,
        error=message.last_error,
    )


def _state(message: Message, now: int) -> JobState:
    if message.state == "dead":
        return "dead"
    if message.held_at(now):
        return "running"
    if message.state == "ready" and message.position > now:
        return "retrying" if message.failures else "delayed"
    return "waiting"


def _ended(result: Raw | None, failure: Raw | None) -> tuple[JobState, str | None]:
    """How a job ended whose message is gone, as far as its worker kept that."""
    if result is not None:
        return "done", None
    if failure is None:
        return "gone", None
    said = json.decode(failure)
    state: JobState = "cancelled" if said["state"] == "cancelled" else "done" if said["state"] == "done" else "dead"
    return state, said.get("error")
