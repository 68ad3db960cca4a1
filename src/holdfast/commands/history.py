"""Finished messages that are kept for a while, where the queue's policy says so."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.commands.transaction import Transaction
from holdfast.records import Message, moment_in
from holdfast.records.policies import KEPT_WHEN_DONE

PRUNED: Final = 2
"""So many messages that were kept long enough go with each settlement: more than come."""


def finish(tx: Transaction, queue: str, messages: Sequence[Message], trace: str | None = None) -> None:
    """Remove messages that are done, or keep those that are to be kept."""
    kept = [message for message in messages if message.tied & KEPT_WHEN_DONE]
    tx.remove([message for message in messages if not message.tied & KEPT_WHEN_DONE])
    if kept:
        tx.save([replace(message.done(tx.now), trace=trace or message.trace) for message in kept])
        forget_done(tx, queue, PRUNED)


def forget_done(tx: Transaction, queue: str, limit: int) -> int:
    """Remove up to so many messages of a queue that were kept as long as its policy says; all of them, where it says nothing any more."""
    settings = tx.settings("queue", queue)
    keep_s = None if settings is None or settings.policy is None else settings.policy.keep_done_s
    before = tx.now if keep_s is None else tx.now - moment_in(keep_s)
    done = tx.browse(queue, "done", None, limit, values=False)
    old = [message for message in done if message.ended_at is not None and message.ended_at <= before]
    tx.remove(old)
    return len(old)


def forget_all_done(tx: Transaction, queues: Sequence[str], limit: int) -> int:
    """The same for each of these queues."""
    forgotten = 0
    for queue in queues:
        if forgotten < limit:
            forgotten += forget_done(tx, queue, limit - forgotten)
    return forgotten
