"""The commands for single messages: `add`, `pop`, `inspect`, `ack`, `release`, `dead-letter`, `size`, `purge`."""

import sys
from queue import Empty
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from msgspec import DecodeError, json

from holdfast.cli.commands import FAILED, REFUSED, ended
from holdfast.cli.localqueue.options import (
    LeaseTimeout,
    LoggedOptions,
    MessageId,
    QueueName,
    StoreOptions,
    WorkerId,
    answer,
    opened,
    tell,
)

if TYPE_CHECKING:
    from holdfast.surfaces.localqueue import PersistentQueue

Token = Annotated[int | None, typer.Option(help="The token that `pop` returned; without it, only while the message is not held.")]
Delay = Annotated[float, typer.Option(min=0.0, help="Seconds until it is due.")]


def add(
    queue: QueueName,
    *,
    value: Annotated[str | None, typer.Option(help="The value, as JSON; without it, what stdin says.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="The value is text, not JSON.")] = False,
    delay: Delay = 0.0,
    dedupe_key: Annotated[str | None, typer.Option(help="If a live message has this key, it is returned instead.")] = None,
    priority: Annotated[int, typer.Option(min=0, help="Higher goes first.")] = 0,
    **at: Unpack[LoggedOptions],
) -> None:
    """Put a message."""
    from holdfast.surfaces.localqueue import PersistentQueue, PriorityOrdering

    item = _value(value, raw=raw)
    with opened(queue, at) as plain:
        jobs = PersistentQueue[Any](queue, store=plain.store, ordering_policy=PriorityOrdering())
        message = jobs.put(item, delay=delay, dedupe_key=dedupe_key, priority=priority)
        tell(
            "queue.enqueue",
            when=at["log_events"],
            queue=queue,
            message_id=message.id,
            state=message.state,
            available_at=message.available_at,
        )
        answer(message)


def pop(
    queue: QueueName,
    *,
    lease_timeout: LeaseTimeout = 30.0,
    worker_id: WorkerId = None,
    block: Annotated[bool, typer.Option("--block", help="Wait for one.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0.0, help="How many seconds, with --block.")] = None,
    **at: Unpack[LoggedOptions],
) -> None:
    """Lease the next message; its token is what `ack`, `release` and `dead-letter` ask for."""
    with opened(queue, at, lease_timeout=lease_timeout) as jobs:
        try:
            message = jobs.get_message(block, timeout, leased_by=worker_id)
        except Empty:
            raise ended("localqueue", "queue is empty", FAILED) from None
        tell(
            "queue.lease",
            when=at["log_events"],
            queue=queue,
            message_id=message.id,
            leased_by=message.leased_by,
            attempts=message.attempts,
            leased_until=message.leased_until,
        )
        answer(message)


def inspect(queue: QueueName, message_id: MessageId, **at: Unpack[StoreOptions]) -> None:
    """Look at a message."""
    with opened(queue, at) as jobs:
        message = jobs.inspect(message_id)
        if message is None:
            raise ended("localqueue", f"message not found: {message_id}", FAILED)
        answer(message)


def settle(
    ctx: typer.Context,
    queue: QueueName,
    message_id: MessageId,
    *,
    token: Token = None,
    **at: Unpack[LoggedOptions],
) -> None:
    """End a message as the command's name says: `ack` removes it, `dead-letter` takes it out of delivery."""
    with opened(queue, at) as jobs:
        end(jobs, message_id, token, str(ctx.info_name), log_events=at["log_events"])


def release(
    queue: QueueName,
    message_id: MessageId,
    *,
    delay: Delay = 0.0,
    token: Token = None,
    **at: Unpack[LoggedOptions],
) -> None:
    """Give a message back."""
    with opened(queue, at) as jobs:
        end(jobs, message_id, token, "release", log_events=at["log_events"], delay=delay)


def size(
    queue: QueueName,
    **at: Unpack[StoreOptions],
) -> None:
    """Count the messages that are due."""
    with opened(queue, at) as jobs:
        answer(jobs.qsize())


def purge(
    queue: QueueName,
    **at: Unpack[LoggedOptions],
) -> None:
    """Remove every message; return how many there were."""
    with opened(queue, at) as jobs:
        count = jobs.purge()
        tell("queue.purge", when=at["log_events"], queue=queue, deleted=count)
        answer(count)


def end(jobs: "PersistentQueue[Any]", message_id: str, token: int | None, action: str, *, log_events: bool, **how: Any) -> None:
    """Call the queue's method of this name, and report what it did."""
    from holdfast.surfaces.localqueue import QueueMessage

    method = action.replace("-", "_")
    if not getattr(jobs, method)(QueueMessage(id=message_id, value=None, queue=jobs.name, token=token), **how):
        reason = "it is not there, or another worker holds it: give the --token that `pop` returned"
        raise ended("localqueue", f"message {message_id} was left alone: {reason if token is None else 'that lease has ended'}", FAILED)
    tell(f"queue.{method}", when=log_events, queue=jobs.name, message_id=message_id, **how)
    answer({"id": message_id, "state": action})


def _value(text: str | None, *, raw: bool) -> Any:
    if text is None:
        text = "" if sys.stdin.isatty() else sys.stdin.read()
        if not text:
            raise ended("localqueue", "there is no value: give --value, or pipe one in", REFUSED)
    if raw:
        return text
    try:
        return json.decode(text)
    except DecodeError as error:
        raise ended("localqueue", f"the value must be JSON unless --raw is given: {error}", REFUSED) from None
