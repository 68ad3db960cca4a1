"""What became of a job, as one look at its message, its result and its report; and another chance for a dead one."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec import JSON, decode_key, encode_key
from holdfast.commands import Browse, Change, Move, Read, Together, Write
from holdfast.commands.topics import queue_topic, watch_topic
from holdfast.records import Entry, Message
from holdfast.results import JobError, JobState, JobStatus, JobStep, wall_time
from holdfast.stores import AsyncStore
from holdfast.workers.flows.state import FLOW, NODE_STATES, decode_state, shown_node
from holdfast.workers.handlers.task_names import named_in
from holdfast.workers.names import errors_of, failure_key, progress_of, results_of
from holdfast.workers.running.kept_errors import error_keys
from holdfast.workers.steps.rows import FOREVER_S, Head, Row, decode_head, decode_row, head_key, job_prefix, row_key, steps_of


async def job_status(store: AsyncStore, queue: str, message_id: str) -> JobStatus:
    """How a job is at this moment."""
    key, failed_key = encode_key(message_id), failure_key(message_id)
    looks: list[Any] = [
        *(Browse(queue, ids=[message_id]), Read(results_of(queue), [key, failed_key]), Read(progress_of(queue), [key])),
        Read(steps_of(queue), [head_key(message_id)]),
        Read(errors_of(queue), error_keys(message_id)),
    ]
    browsed, results, reports, heads, failures = await store.execute(Together(looks))
    progress = JSON.decode(reports.entries[0].value) if reports.entries else None
    errors = _errors(failures.entries)
    kept = {entry.key: entry.value for entry in results.entries}
    state, error = _ended(kept.get(key), kept.get(failed_key))
    if not browsed.messages:
        return JobStatus(state, queue, message_id, error=error, errors=errors)
    message = browsed.messages[0]
    found = replace(_read(message, browsed.now, store.wall_offset_us()), progress=progress, errors=errors)
    if message.state == "done":  # It is kept for a while, and what is kept of its end may have expired before.
        return replace(found, state="done" if state == "gone" else state, error=error)
    return _sleeping(found, decode_head(heads.entries[0].value)) if heads.entries else found


def _errors(entries: list[Entry]) -> tuple[JobError, ...]:
    return tuple(sorted((json.decode(entry.value, type=JobError) for entry in entries), key=attrgetter("attempt", "at")))


async def watch_job(store: AsyncStore, queue: str, message_id: str, poll_s: float) -> AsyncGenerator[JobStatus, None]:
    """Yield the status of a job, then each other that is seen, until it has ended."""
    last = None
    with store.mark(watch_topic(queue_topic(queue))) as mark:
        while True:
            status = await job_status(store, queue, message_id)
            if status != last:
                mark.used()
                yield status
            last = status
            if status.has_ended:
                return
            await store.wait(mark, poll_s, None, poll_s)


async def job_steps(store: AsyncStore, queue: str, message_id: str) -> list[JobStep]:
    """The recorded steps of a durable job, in the order in which they were written last."""
    name = steps_of(queue)
    heads = (await store.execute(Read(name, [head_key(message_id)]))).entries
    if not heads:
        return []
    run = decode_head(heads[0].value).run
    page = await store.execute(Read(name, prefix=job_prefix(message_id)))
    entries = page.entries
    while page.more:
        page = await store.execute(Read(name, prefix=job_prefix(message_id), after=entries[-1].key))
        entries += page.entries
    rows = {entry.key: entry for entry in entries if _is_row(entry, run)}
    flow = rows.pop(row_key(message_id, run, FLOW), None)
    found = [(entry.revision, _step(entry)) for entry in rows.values()]
    if flow is not None:
        found += await _flow_steps(store, decode_row(flow.value))
    return [step for _, step in sorted(found, key=itemgetter(0))]


async def _flow_steps(store: AsyncStore, row: Row) -> list[tuple[int, JobStep]]:
    """The nodes of a flow whose turn has come."""
    found: list[tuple[int, JobStep]] = []
    if row.result is None:
        return found
    graph = decode_state(row.result).graph
    for prefix in NODE_STATES:
        after: str | None = None
        while True:
            page = await store.execute(Read(graph, prefix=prefix, after=after))
            found += [(entry.revision, shown_node(prefix, entry)) for entry in page.entries]
            if not page.more:
                break
            after = page.entries[-1].key
    return found


def _is_row(entry: Entry, run: int) -> bool:
    parts: Any = decode_key(entry.key)
    return parts[1] == run and len(parts) == 6  # noqa: PLR2004 - a timer has one more


def _step(entry: Entry) -> JobStep:
    parts: Any = decode_key(entry.key)
    row = decode_row(entry.value)
    error = f"{row.type}: {row.message}" if row.type else None
    return JobStep(
        parts[3].removeprefix("~"),
        row.state,
        branch=parts[2],
        number=parts[5],
        result=None if row.result is None else JSON.decode(row.result),
        failures=row.failures,
        error=error,
        at=None if row.at is None else datetime.fromtimestamp(row.at, UTC),
        child=None if row.child is None else row.child[1],
    )


async def retry(store: AsyncStore, queue: str, message_id: str) -> bool:
    """Redrive a job if it is dead, and forget that it was; False if it is not."""
    found = (await store.execute(Browse(queue, ids=[message_id]))).messages
    if not found or found[0].state != "dead":
        return False
    forget = Write(results_of(queue), [Change(failure_key(message_id), "delete")])
    moved, _ = await store.execute(Together([Move(queue, "ready", [message_id]), forget]))
    return bool(moved.ids)


def _read(message: Message, now: int, offset_us: int) -> JobStatus:
    return JobStatus(
        _state(message, now),
        message.queue,
        message.id,
        task=named_in(message.metadata).task,
        attempts=message.attempts,
        failures=message.failures,
        enqueued_at=wall_time(message.created_at, offset_us),
        started_at=wall_time(message.since, offset_us) if message.attempts else None,
        finished_at=wall_time(message.dead_at if message.ended_at is None else message.ended_at, offset_us),
        due_at=wall_time(message.position, offset_us),
        worker=message.holder if message.state == "done" or message.held_at(now) else None,
        error=message.last_error,
    )


def _sleeping(status: JobStatus, head: Head) -> JobStatus:
    """The status of a durable job: where another would be delayed, it sleeps."""
    if status.state not in ("delayed", "retrying") or not head.waits:
        return status
    far = datetime.now(UTC) + timedelta(seconds=FOREVER_S / 2)
    due_at = None if status.due_at is None or status.due_at > far or head.looks else status.due_at
    waits = ", ".join(head.waits)
    waiting_for = waits if due_at is None else f"{waits} until {due_at.isoformat(timespec='seconds')}"
    return replace(status, state="sleeping", due_at=due_at, waiting_for=waiting_for)


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
