# Generated from src/holdfast/_async/flows/signalling.py by tools/unasync.py; do not edit.
"""Sending a signal to a durable job: it is kept until the job waits for it, and ends its sleep."""

from typing import Final

from msgspec import Raw, json

from holdfast.commands import Browse, Change, Move, Read, Together, Write
from holdfast.errors import JobGone, Refused
from holdfast.stores import Store
from holdfast.workers.steps.rows import check_step_name, sent_key, signal_key, signals_of

TRIES: Final = 1_000
"""How often to try while others send signals of the same name to the same job."""


def send(store: Store, job: tuple[str, str], name: str, payload: Raw, sent_id: str | None = None) -> bool:
    """Send a signal to a job, by its queue and id; False if one with the same `sent_id` was sent before.

    Raises `JobGone` if the job is not in its queue.
    """
    check_step_name(name, "signal")
    queue, job_id = job
    inbox, head = signals_of(queue), signal_key(job_id, name)
    sent = None if sent_id is None else sent_key(job_id, name, sent_id)
    for _ in range(TRIES):
        looks = Together([Browse(queue, ids=[job_id]), Read(inbox, [head] if sent is None else [head, sent])])
        browsed, entries = store.execute(looks)
        if not browsed.living:
            raise _gone(queue, job_id)
        known = {entry.key: entry for entry in entries.entries}
        if sent is not None and sent in known:
            return False
        count = json.decode(known[head].value, type=int) if head in known else 0
        changes = [
            Change(head, value=Raw(json.encode(count + 1)), expect="revision", revision=known[head].revision if head in known else 0),
            Change(signal_key(job_id, name, count), value=payload),
        ]
        if sent is not None:
            changes.append(Change(sent, value=Raw(json.encode(count)), expect="absent"))
        try:
            # The look in the same step says whether the job was there at that very moment.
            step = Together([Write(inbox, changes), Move(queue, "due", [job_id]), Browse(queue, ids=[job_id])])
            _, _, there = store.execute(step)
        except Refused:
            continue  # Another signal came first, and has this number.
        if there.living:
            return True
        store.execute(Write(inbox, [Change(change.key, "delete") for change in changes]))
        raise _gone(queue, job_id)
    raise Refused(f"signal {name!r} for job {job_id} of queue {queue!r} could not be sent: too many others are; try again")


def _gone(queue: str, job_id: str) -> JobGone:
    return JobGone(f"job {job_id} is not in queue {queue!r}: it has ended, it was removed, or it never was")
