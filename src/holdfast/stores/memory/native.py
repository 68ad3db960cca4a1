"""The commonest commands in their simplest cases, answered without a transaction; what is left out takes the commands' own rules.

Each answers as `check` and `write` would, with whom to wake, or None with nothing done. Slots go in before the message they stand for and
come out after it: a Ctrl-C in the middle leaves a stale slot, never a message that nobody finds.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from holdfast.commands import Claim, Claimed, Command, Held, Put, Puts, Settle
from holdfast.commands.topics import key_topic
from holdfast.records import NEVER, Message, end_of
from holdfast.stores.memory.log import KeptOne, Log
from holdfast.stores.memory.queue import MemoryQueue
from holdfast.stores.memory.schedule import Slot
from holdfast.stores.memory.tables import Tables

Hints = Iterable[tuple[str, int]]
"""Topics, and how many of those who wait on each to wake."""

NOTHING: Final[Mapping[str, Any]] = {}
DONE: Final[Mapping[str, Any]] = {"to": "done"}


def put_one(tables: Tables, command: Put, now: int) -> tuple[Puts, Hints] | None:
    """A message that is due at once, under an id and a key that are free, into a queue without bounds."""
    if command.id or len(command.items) != 1:
        return None
    item, queue = command.items[0], tables.queues.get(command.queue)
    if queue is None or not queue.is_unbounded or item.delay_s or item.at is not None or item.start_within_s is not None:
        return None
    value, metadata, key, priority = item.value, item.metadata, item.key, item.priority
    if item.id in queue.ids or (key is not None and key in queue.live):
        return None
    if not tables.by_reference:
        if len(value) > tables.value_bytes:
            return None
        value = value.copy()
        metadata = metadata and metadata.copy()
    n = tables.last_number + 1
    message = Message(
        queue=queue.name,
        id=item.id,
        value=value,
        n=n,
        key=key,
        priority=priority,
        position=now,
        max_attempts=item.max_attempts,
        dead_letter=item.dead_letter,
        created_at=now,
        metadata=metadata,
    )
    tables.last_number = n
    queue.now = now
    tell(tables.log, queue, "put", message, NOTHING)
    line = queue.lines.get(priority) or queue.line(priority)
    line.add(now, n)
    queue.ids[item.id] = n
    if key is not None:
        queue.live[key] = n
    tables.messages[n] = message
    return Puts([item.id], [True]), queue.put_hints if key is None else (*queue.put_hints, (key_topic(queue.name, key), 1))


def claim_one(tables: Tables, command: Claim, now: int) -> tuple[Claimed, Hints] | None:
    """The first message that is due, where time has overtaken nobody."""
    if command.id or command.limit != 1 or command.take or command.key is not None:
        return None
    queue = tables.queues.get(command.queue)
    if queue is None or not queue.is_unbounded or queue.is_paused or queue.late.count:
        return None
    queue.now = now
    end = queue.ends.first()
    if end is not None and end[0] <= now:
        return None
    slot = first_due(queue, now)
    if slot is None:
        return None
    n = slot[1]
    message, until = tables.messages[n], end_of(now, command.lease_s)
    token = tell(tables.log, queue, "claimed", message, {"holder": command.holder})
    leased = message.leased(command.holder, token, now, until, command.expired_to)
    if until < NEVER:
        queue.ends.add(until, n)
    tables.messages[n] = leased
    queue.leased_count += 1
    queue.lines[message.priority].leave()
    return Claimed([leased]), queue.watch_hints


def settle_one(tables: Tables, command: Settle, now: int) -> tuple[Held, Hints] | None:
    """A message that is done, held, and has no copy waiting behind it."""
    if command.id or command.to != "done" or len(command.receipts) != 1:
        return None
    receipt = command.receipts[0]
    queue = tables.queues.get(receipt.queue)
    n = queue.ids.get(receipt.id) if queue is not None else None
    if queue is None or n is None:
        return None
    message = tables.messages[n]
    key, until = message.key, message.until
    if message.token != receipt.token or until <= now or message.state != "leased" or (key is not None and key in queue.copies):
        return None
    queue.now = now
    tell(tables.log, queue, "settled", message, DONE)
    del tables.messages[n]
    del queue.ids[receipt.id]
    if key is not None:
        del queue.live[key]
    queue.leased_count -= 1
    if until < NEVER:
        queue.ends.leave()
    return Held([True]), queue.watch_hints


def first_due(queue: MemoryQueue, now: int) -> Slot | None:
    """The slot of the first message that is due."""
    for negated in queue.priorities:
        line = queue.lines[-negated]
        slot = line.first() if line.count else None
        if slot is not None and slot[0] <= now:
            return slot
    return None


def tell(log: Log, queue: MemoryQueue, event: str, message: Message, more: Mapping[str, Any]) -> int:
    """Write an event of one message; answer its number."""
    index = log.latest + 1
    log.topic(queue.topic, queue.now).append(KeptOne(index, queue.now, event, message.id, message.key, more))
    log.latest = index
    return index


NATIVE: Final[Mapping[type[Command[Any]], Callable[[Tables, Any, int], tuple[Any, Hints] | None]]] = {
    Put: put_one,
    Claim: claim_one,
    Settle: settle_one,
}
