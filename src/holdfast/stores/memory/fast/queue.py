"""The fast path of one queue: plain steps without a transaction and without a command.

Each does what a command's `check` and `write` would, or returns None and has done nothing: then the command itself decides. The functions
are written for speed: calls are avoided, and what never changes is bound once. A Ctrl-C in the middle of a step undoes it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands import Item
from holdfast.commands.events import RETAINED
from holdfast.commands.topics import key_topic
from holdfast.records import HISTORY, NEVER, Ending, Message, ReturnTo
from holdfast.stores import FastQueue
from holdfast.stores.memory.fast.due import due_under, first_due, front_of
from holdfast.stores.memory.guard import Guard
from holdfast.stores.memory.log import NOTHING, KeptClaim, KeptOne
from holdfast.stores.memory.queue import MemoryQueue
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.undo import Undo
from holdfast.stores.waiting.waiters import Waiters

DONE: Final[Mapping[str, Any]] = {"to": "done"}
READY: Final[Mapping[str, Any]] = {"to": "ready"}


class Ground(Struct, frozen=True):
    """What the queues of one store stand on."""

    tables: Tables
    lock: Guard
    now_ns: Callable[[], int]
    waiters: Waiters
    tidy: Callable[[], None]
    """To be called, without the lock, when the log is due for it."""
    give_back: Callable[[Message], object]
    """To be called, without the lock, with what was claimed for a caller who was interrupted."""

    def take_back(self, queue: MemoryQueue, n: int, before: Message | None, latest: int) -> None:
        """Let a step that was interrupted not have happened: its message is as it was before, and the log ends at `latest`."""
        undo = Undo(self.tables, latest)
        undo.queues.add(queue.name)
        undo.note_before(self.tables.messages, n, before)
        undo.take_back()


def fast_queue(queue: MemoryQueue, ground: Ground) -> FastQueue:
    """The fast path of one queue, valid as long as the queue is; the steps of a dropped queue do nothing."""
    return FastQueue(
        putting(queue, ground),
        claiming(queue, ground),
        acknowledging(queue, ground),
        releasing(queue, ground),
        counting(queue, ground),
    )


def putting(queue: MemoryQueue, ground: Ground) -> Callable[..., bool | None]:
    """Put one message, under an id and a key that are free, into a queue without bounds."""
    tables, lock, now_ns, tidy = ground.tables, ground.lock, ground.now_ns, ground.tidy
    waiters, marked = ground.waiters, ground.waiters.marked
    messages, log, topics, keeps_events = tables.messages, tables.log, tables.log.topics, tables.log.keeps
    name, topic, ids, live = queue.name, queue.topic, queue.ids, queue.live

    def put(
        key: Any, value: Any, message_id: str | None = None, priority: int = 0, delay: int = 0, item: Item | None = None
    ) -> bool | None:
        with lock:
            if key in live or not queue.is_unbounded:
                return None
            n, is_named = tables.last_number + 1, message_id is not None
            message_id = message_id or f"{n}"
            if (ids and message_id in ids) or (is_named and message_id.isdecimal() and queue.find(message_id)):
                return None
            now, latest, tables.last_number = now_ns() // 1000, log.latest, n
            try:
                if keeps_events:
                    events = topics.get(topic)
                    if events is None or len(events) >= RETAINED:
                        events = log.topic(topic, now)
                    log.latest = index = log.latest + 1
                    events.append(KeptOne(index, now, "put", message_id, key, NOTHING))
                if item is None:
                    messages[n] = Message(name, message_id, value, n, key, priority, now, "ready", 0, 0, None, None, None, now)
                else:
                    messages[n] = item.message(name, now, 0, n)
                line = queue.lines.get(priority) or queue.line(priority)
                slots = line.line
                if delay or (slots and slots[-1][0] > now):
                    line.add(now + delay, n, ahead=bool(delay))
                else:
                    slots.append((now, n))
                    line.count += 1
                if is_named:
                    ids[message_id] = n
                if key is not None:
                    live[key] = n
            except BaseException:
                ground.take_back(queue, n, None, latest)
                raise
        if marked:
            waiters.hint_each(queue.put_hints if key is None else (*queue.put_hints, (key_topic(name, key), 1)))
        if keeps_events and log.latest >= log.tidy_at:
            tidy()
        return True

    return put


def claiming(queue: MemoryQueue, ground: Ground) -> Callable[[Any, str, float | None, ReturnTo], Message | None]:
    """Claim the first message that is due, where nothing is overdue, or the one under a key."""
    tables, lock, now_ns, tidy = ground.tables, ground.lock, ground.now_ns, ground.tidy
    waiters, marked = ground.waiters, ground.waiters.marked
    messages, log, topics, keeps_events = tables.messages, tables.log, tables.log.topics, tables.log.keeps
    topic, late, ends, holders = queue.topic, queue.late, queue.ends, queue.holders

    def claim(key: Any, holder: str, lease_s: float | None, expired_to: ReturnTo) -> Message | None:
        held = None
        try:
            with lock:
                if late.count or not queue.is_plain:
                    return None
                now = now_ns() // 1000
                message = first_due(queue, now) if key is None else due_under(queue, key, now)
                if message is None or message.group is not None:
                    return None
                n, latest = message.n, log.latest
                log.latest = token = latest + 1
                try:
                    if keeps_events:
                        events = topics.get(topic)
                        if events is None or len(events) >= RETAINED:
                            events = log.topic(topic, now)
                        events.append(KeptClaim(token, now, message.id, message.key, holder))
                    until = NEVER if lease_s is None else now + round(lease_s * 1_000_000)
                    held = replace(
                        message,
                        state="leased",
                        holder=holder,
                        token=token,
                        since=now,
                        until=until,
                        expired_to=expired_to,
                        attempts=message.attempts + 1,
                    )
                    if until < NEVER:
                        ends.add(until, n)
                    held_by = holders.get(holder)
                    if held_by is None:
                        held_by = queue.held_by(holder)
                    held_by[n] = now
                    queue.since_sum += now
                    messages[n] = held
                    line = queue.lines[message.priority]
                    if line.line and line.line[0][1] == n:
                        line.line.popleft()
                        line.count -= 1
                    else:
                        line.leave(n)
                except BaseException:
                    ground.take_back(queue, n, message, latest)
                    raise
            if marked:
                waiters.hint_each(queue.watch_hints)
            if keeps_events and token >= log.tidy_at:
                tidy()
        except BaseException:
            # Nobody will know of it; if the step was taken back there is nothing to give back.
            if held is not None:
                ground.give_back(held)
            raise
        return held

    return claim


def acknowledging(queue: MemoryQueue, ground: Ground) -> Callable[[Message], bool | None]:
    """Remove one message that is held and has no copy waiting behind it."""
    tables, lock, now_ns, tidy = ground.tables, ground.lock, ground.now_ns, ground.tidy
    waiters, marked = ground.waiters, ground.waiters.marked
    messages, log, topics, keeps_events = tables.messages, tables.log, tables.log.topics, tables.log.keeps
    name, topic, ids, live, copies, ends, holders = queue.name, queue.topic, queue.ids, queue.live, queue.copies, queue.ends, queue.holders

    def ack(message: Message) -> bool | None:
        n, key, is_endless = message.n, message.key, message.until == NEVER
        with lock:
            if (
                messages.get(n) is not message
                or message.queue != name
                or message.state != "leased"
                or message.tied
                or (copies and key in copies)
            ):
                return None
            # Where no event is kept and the lease has no end, nobody needs to know what time it is.
            now = 0 if is_endless and not keeps_events else now_ns() // 1000
            if not is_endless and message.until <= now:
                return None
            latest = log.latest
            try:
                if keeps_events:
                    events = topics.get(topic)
                    if events is None or len(events) >= RETAINED:
                        events = log.topic(topic, now)
                    log.latest = index = log.latest + 1
                    events.append(KeptOne(index, now, "settled", message.id, key, DONE))
                del messages[n], holders[message.holder][n]
                queue.since_sum -= message.since
                if ids:
                    ids.pop(message.id, None)
                if key is not None:
                    del live[key]
                if not is_endless:
                    ends.leave(n)
            except BaseException:
                ground.take_back(queue, n, message, latest)
                raise
        if marked:
            waiters.hint_each(queue.watch_hints)
        if keeps_events and log.latest >= log.tidy_at:
            tidy()
        return True

    return ack


def releasing(queue: MemoryQueue, ground: Ground) -> Callable[[Message, ReturnTo], bool | None]:
    """Give back one message that is held and has no copy waiting behind it, to a queue without bounds."""
    tables, lock, now_ns, tidy = ground.tables, ground.lock, ground.now_ns, ground.tidy
    waiters, marked = ground.waiters, ground.waiters.marked
    messages, log, keeps_events = tables.messages, tables.log, tables.log.keeps
    name, topic, copies, ends, holders = queue.name, queue.topic, queue.copies, queue.ends, queue.holders

    def release(message: Message, return_to: ReturnTo) -> bool | None:
        n, key, priority, until = message.n, message.key, message.priority, message.until
        holder, token, since = message.holder, message.token, message.since
        with lock:
            if (
                messages.get(n) is not message
                or message.queue != name
                or message.state != "leased"
                or message.tied
                or (copies and key in copies)
            ):
                return None
            now = now_ns() // 1000
            if until <= now or not queue.is_unbounded:
                return None
            latest = log.latest
            try:
                if keeps_events:
                    events = log.topic(topic, now)
                    log.latest = index = log.latest + 1
                    events.append(KeptOne(index, now, "settled", message.id, key, READY))
                line = queue.lines.get(priority) or queue.line(priority)
                position = now if return_to == "back" else message.position if return_to == "place" else front_of(queue, priority, now)
                line.add(position, n)
                ending = Ending(holder, token, since, now, "released")
                history = (*message.history, ending)[-HISTORY:]
                messages[n] = replace(message, state="ready", position=position, history=history, endings=message.endings + 1)
                del holders[holder][n]
                queue.since_sum -= since
                if until < NEVER:
                    ends.leave(n)
            except BaseException:
                ground.take_back(queue, n, message, latest)
                raise
        if marked:
            waiters.hint_each(queue.put_hints if key is None else (*queue.put_hints, (key_topic(name, key), 1)))
        if keeps_events and log.latest >= log.tidy_at:
            tidy()
        return True

    return release


def counting(queue: MemoryQueue, ground: Ground) -> Callable[[], tuple[int, int] | None]:
    """Count the messages where nothing is overdue."""
    lock, now_ns = ground.lock, ground.now_ns

    def sizes() -> tuple[int, int] | None:
        with lock:
            if queue.late.count or queue.ends.is_due(now_ns() // 1000):
                return None
            return queue.ready_count() + len(queue.copies), queue.leased_count()

    return sizes
