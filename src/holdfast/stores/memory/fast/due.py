"""Which messages of a queue are due, for the fast path."""

from typing import Any

from holdfast.records import Message
from holdfast.stores.memory.queue import MemoryQueue


def due_under(queue: MemoryQueue, key: Any, now: int) -> Message | None:
    """The message under a key, if it is due."""
    message = queue.messages.get(queue.live.get(key, 0))
    return message if message is not None and message.state == "ready" and message.position <= now else None


def first_due(queue: MemoryQueue, now: int) -> Message | None:
    """The first message that is due, where no lease has ended and none is late."""
    ends = queue.ends
    if (ends.heap or (ends.line and ends.line[0][0] <= now)) and ends.is_due(now):
        return None
    queue.now = now
    messages, lines = queue.messages, queue.lines
    for negated in queue.priorities:
        line = lines[-negated]
        slots = line.line
        if slots and not line.heap:
            # Nearly always: nobody stands out of order, and the first slot is no stale one.
            position, n = slots[0]
            message = messages.get(n)
            if message is not None and message.state == "ready" and message.position == position and message.queue == queue.name:
                if position <= now:
                    return message
                continue
        slot = line.first() if line.count else None
        if slot is not None and slot[0] <= now:
            return messages[slot[1]]
    return None


def front_of(queue: MemoryQueue, priority: int, now: int) -> int:
    """The position before the head of a line."""
    queue.now = now
    head = queue.line(priority).first()
    return now if head is None else min(head[0] - 1, now)
