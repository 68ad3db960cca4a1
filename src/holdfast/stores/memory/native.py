"""The commonest commands in their simplest cases, answered without a transaction; what is left out takes the commands' own rules.

Each answers as `check` and `write` would, or None with nothing done. They are written for speed: no call that can be spared, and what
never changes is bound once. Slots go in before the message they stand for and come out after it: a Ctrl-C in the middle leaves a stale
slot, never a message that nobody finds.
"""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from holdfast.commands import Claim, Claimed, Command, Held, Put, Puts, Settle
from holdfast.commands.events import RETAINED
from holdfast.commands.topics import key_topic
from holdfast.records import NEVER, Message
from holdfast.stores.memory.log import NOTHING, KeptOne
from holdfast.stores.memory.queue import MemoryQueue
from holdfast.stores.memory.tables import Tables
from holdfast.stores.waiting import Waiters

DONE: Final[Mapping[str, Any]] = {"to": "done"}

Clock = Callable[[], int]
Native = Mapping[type[Command[Any]], Callable[[Any], Any]]


def natives(tables: Tables, lock: Lock, now_us: Clock, waiters: Waiters) -> Native:
    """The native answers of one store, by command."""
    return {
        Put: putting(tables, lock, now_us, waiters),
        Claim: claiming(tables, lock, now_us, waiters),
        Settle: settling(tables, lock, now_us, waiters),
    }


def putting(tables: Tables, lock: Lock, now_us: Clock, waiters: Waiters) -> Callable[[Put], Puts | None]:
    """Put one message that is due at once, under an id and a key that are free, into a queue without bounds."""
    queues, messages, log, topics = tables.queues, tables.messages, tables.log, tables.log.topics
    is_copied, value_bytes = not tables.by_reference, tables.value_bytes

    def put_one(command: Put) -> Puts | None:
        if command.id or len(command.items) != 1:
            return None
        item = command.items[0]
        message_id, key, value, metadata, priority = item.id, item.key, item.value, item.metadata, item.priority
        if item.delay_s or item.at is not None or item.start_within_s is not None or (is_copied and len(value) > value_bytes):
            return None
        if is_copied:
            value = value.copy()
            metadata = metadata and metadata.copy()
        with lock:
            queue = queues.get(command.queue)
            if queue is None or not queue.is_unbounded or message_id in queue.ids or key in queue.live:
                return None
            now = now_us()
            tables.last_number = n = tables.last_number + 1
            events = topics.get(queue.topic)
            if events is None or len(events) >= RETAINED:
                events = log.topic(queue.topic, now)
            log.latest = index = log.latest + 1
            events.append(KeptOne(index, now, "put", message_id, key, NOTHING))
            line = queue.lines.get(priority) or queue.line(priority)
            slots = line.line
            if slots and slots[-1][0] > now:
                line.add(now, n)
            else:
                slots.append((now, n))
                line.count += 1
            queue.ids[message_id] = n
            if key is not None:
                queue.live[key] = n
            budget, grave = item.max_attempts, item.dead_letter
            messages[n] = Message(
                queue.name, message_id, value, n, key, priority, now, "ready", 0, 0, budget, grave, None, now, metadata=metadata
            )
        if waiters.is_marked:
            waiters.hint_each(queue.put_hints if key is None else (*queue.put_hints, (key_topic(queue.name, key), 1)))
        return Puts([message_id], [True])

    return put_one


def claiming(  # noqa: C901 - a case after the other, and a function for each would be a call for each
    tables: Tables, lock: Lock, now_us: Clock, waiters: Waiters
) -> Callable[[Claim], Claimed | None]:
    """Claim the first message that is due, where time has overtaken nobody."""
    queues, messages, log, topics = tables.queues, tables.messages, tables.log, tables.log.topics

    def claim_one(command: Claim) -> Claimed | None:
        lease_s, holder = command.lease_s, command.holder
        if command.id or command.limit != 1 or command.take or command.key is not None:
            return None
        with lock:
            queue = queues.get(command.queue)
            if queue is None or not queue.is_plain or queue.late.count:
                return None
            now, ends = now_us(), queue.ends
            slots = ends.line
            if (ends.heap or (slots and slots[0][0] <= now)) and ends.is_due(now):
                return None
            message = first_due(queue, now)
            if message is None:
                return None
            n = message.n
            events = topics.get(queue.topic)
            if events is None or len(events) >= RETAINED:
                events = log.topic(queue.topic, now)
            log.latest = token = log.latest + 1
            events.append(KeptOne(token, now, "claimed", message.id, message.key, {"holder": holder}))
            until = NEVER if lease_s is None else now + round(lease_s * 1_000_000)
            leased = message.leased(holder, token, now, until, command.expired_to)
            if slots and slots[-1][0] > until:
                ends.add(until, n)
            elif until < NEVER:
                slots.append((until, n))
                ends.count += 1
            messages[n] = leased
            queue.leased_count += 1
            line = queue.lines[message.priority]
            if line.line and line.line[0][1] == n:
                line.line.popleft()
                line.count -= 1
            else:
                line.leave(n)
        if waiters.is_marked:
            waiters.hint_each(queue.watch_hints)
        return Claimed([leased])

    return claim_one


def settling(tables: Tables, lock: Lock, now_us: Clock, waiters: Waiters) -> Callable[[Settle], Held | None]:
    """Settle one message that is done and held, and has no copy waiting behind it."""
    queues, messages, log, topics = tables.queues, tables.messages, tables.log, tables.log.topics

    def settle_one(command: Settle) -> Held | None:
        if command.id or command.to != "done" or len(command.receipts) != 1:
            return None
        receipt = command.receipts[0]
        message_id = receipt.id
        with lock:
            queue = queues.get(receipt.queue)
            n = None if queue is None else queue.ids.get(message_id)
            if queue is None or n is None:
                return None
            now, message = now_us(), messages[n]
            key, until = message.key, message.until
            if message.token != receipt.token or until <= now or message.state != "leased" or key in queue.copies:
                return None
            events = topics.get(queue.topic)
            if events is None or len(events) >= RETAINED:
                events = log.topic(queue.topic, now)
            log.latest = index = log.latest + 1
            events.append(KeptOne(index, now, "settled", message_id, key, DONE))
            del messages[n], queue.ids[message_id]
            if key is not None:
                del queue.live[key]
            queue.leased_count -= 1
            ends = queue.ends
            if until < NEVER:
                if ends.line and ends.line[0][1] == n:
                    ends.line.popleft()
                    ends.count -= 1
                else:
                    ends.leave(n)
        if waiters.is_marked:
            waiters.hint_each(queue.watch_hints)
        return Held([True])

    return settle_one


def first_due(queue: MemoryQueue, now: int) -> Message | None:
    """The first message that is due, where none is late."""
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
