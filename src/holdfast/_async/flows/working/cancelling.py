"""Cancels jobs by id: waiting jobs are removed, running ones are notified through a dict that their workers watch."""

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Raw, json

from holdfast.codec import decode_key, encode_key, key_prefix
from holdfast.commands import Browse, Change, Move, Read, Together, Write
from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.errors import StoreError, StoreUnavailable
from holdfast.stores import AsyncStore
from holdfast.workers.orders import results_of
from holdfast.workers.running.running_jobs import Crew
from holdfast.workers.running.settlements import CANCELS, failure_key
from holdfast.workers.running.wakeup import Bell
from holdfast.workers.steps.rows import head_key, job_prefix, signals_of, steps_of

REQUEST_TTL_S = 3_600.0
"""How long a request to cancel waits for the worker that runs the job."""

KEEP_S = 86_400.0

PAGE = 5_000
"""How many rows are deleted at once."""

POLL_S = 5.0
"""How much a missed wake-up can cost."""

_log = logging.getLogger("holdfast.worker")


async def cancel(store: AsyncStore, queue: str, message_id: str, *, force: bool = False) -> Literal["cancelled", "requested", "absent"]:
    """Remove a job that waits, or ask the worker that runs it to end it; a durable job is asked, unless `force` says otherwise."""
    browsed, heads = await store.execute(Together([Browse(queue, ids=[message_id]), Read(steps_of(queue), [head_key(message_id)])]))
    found, is_durable = browsed.living, bool(heads.entries)
    if not found:
        return "absent"
    may_remove = force or not is_durable or found[0].state == "dead"
    if found[0].state != "leased" and may_remove and await _remove(store, queue, message_id):
        if is_durable:
            await forget_steps(store, queue, message_id)
        return "cancelled"
    ttl_s = KEEP_S * 30 if is_durable else REQUEST_TTL_S
    request = Change(encode_key((queue, message_id)), value=Raw(json.encode(found[0].created_at)), ttl_s=ttl_s)
    await store.execute(Together([Write(CANCELS, [request]), Move(queue, "due", [message_id])]))
    return "requested"


async def forget_steps(store: AsyncStore, queue: str, message_id: str) -> None:
    """Delete everything that is recorded of a job that is gone."""
    await store.execute(Write(steps_of(queue), [Change(head_key(message_id), "delete")]))
    for name in (steps_of(queue), signals_of(queue)):
        while keys := [entry.key for entry in (await store.execute(Read(name, prefix=job_prefix(message_id), limit=PAGE))).entries]:
            await store.execute(Write(name, [Change(key, "delete") for key in keys]))


async def _remove(store: AsyncStore, queue: str, message_id: str) -> bool:
    """Remove a job that is not claimed; False if it is."""
    # Said before it is done: it counts once the message is gone, so that nobody finds neither the job nor what became of it.
    report = Raw(json.encode({"state": "cancelled", "error": "it was cancelled before it was run"}))
    note = Change(failure_key(message_id), value=report, ttl_s=KEEP_S)
    (written,) = await store.execute(Write(results_of(queue), [note]))
    if (await store.execute(Move(queue, "gone", [message_id]))).ids:
        return True
    if written.entry is not None:
        await store.execute(Write(results_of(queue), [Change(note.key, "delete", expect="revision", revision=written.entry.revision)]))
    return False


async def hear_cancellations(store: AsyncStore, crews: Sequence[Crew], bell: Bell) -> None:
    """Tell the runs of crews whose cancellation is asked for, until `bell` rings; what they have `cancelled` is kept up to date."""
    with store.mark(watch_topic(dict_topic(CANCELS))) as mark:
        while bell.listen(mark):
            try:
                for crew in crews:
                    entries = (await store.execute(Read(CANCELS, prefix=key_prefix((crew.queue,))))).entries
                    crew.cancel({_id_of(entry.key): json.decode(entry.value, type=int) for entry in entries})
            except (StoreUnavailable, StoreError) as error:
                _log.debug("cancellations cannot be received for now: %s", error)
            await store.wait(mark, math.inf, None, POLL_S)
    bell.ignore()


def _id_of(key: str) -> str:
    name: Any = decode_key(key)
    return str(name[1])
