"""The commonest steps on one queue in their simplest cases, without a transaction and without a command.

Each does what a command's `check` and `write` would, or answers None with nothing done: then the command's own rules are asked. They are
written for speed: no call that can be spared, and what never changes is bound once. A Ctrl-C in the middle takes the step back.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands.events import RETAINED
from holdfast.commands.topics import key_topic
from holdfast.records import HISTORY, NEVER, Ending, Message, ReturnTo
from holdfast.stores.memory.due import due_under, first_due, front_of
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


class Shortcuts(Struct, frozen=True):
    """What a queue offers to whoever has no command at hand: ask here first, and send the command when the answer is None."""

    put: Callable[[Any, Any], bool | None]
    """(key, value): a new message under a free key, with its number for an id."""
    add: Callable[..., bool | None]
    """(key, value, id, priority, max_attempts, dead_letter, metadata): a new message."""
    claim: Callable[[Any, str, float | None, ReturnTo], Message | None]
    """(key or None, holder, lease_s, expired_to): the first message that is due, or the one under the key."""
    ack: Callable[[Message], bool | None]
    """(the message as it was claimed): while it is the one that is kept, nothing has happened to it since."""
    release: Callable[[Message, ReturnTo], bool | None]
    """(the message as it was claimed, return_to)."""
    sizes: Callable[[], tuple[int, int] | None]
    """How many messages wait, buffered ones too, and how many are leased."""


def shortcuts(queue: MemoryQueue, ground: Ground) -> Shortcuts:
    """The shortcuts of one queue. They are good for as long as the queue is: one that is dropped obeys nobody."""
    return Shortcuts(
        putting(queue, ground),
        adding(queue, ground),
        claiming(queue, ground),
        acknowledging(queue, ground),
        releasing(queue, ground),
        counting(queue, ground),
    )


def putting(queue: MemoryQueue, ground: Ground) -> Callable[[Any, Any], bool | None]:
    """Put one message under a key that is free into a queue without bounds, in the fewest steps."""
    tables, lock, now_ns, tidy = ground.tables, ground.lock, ground.now_ns, ground.tidy
    waiters, marked = ground.waiters, ground.waiters.marked
    messages, log, keeps_events = tables.messages, tables.log, tables.log.keeps
    name, topic, ids, live, line = queue.name, queue.topic, queue.ids, queue.live, queue.line(0)

    def put(key: Any, value: Any) -> bool | None:
        with lock:
            if key in live or not queue.is_unbounded:
                return None
            n = tables.last_number + 1
            message_id = f"{n}"
            if ids and message_id in ids:
                return None
            now, latest = now_ns() // 1000, log.latest
            tables.last_number = n
            try:
                if keeps_events:
                    events = log.topic(topic, now)
                    log.latest = index = log.latest + 1
                    events.append(KeptOne(index, now, "put", message_id, key, NOTHING))
                slots = line.line
                if slots and slots[-1][0] > now:
                    line.add(now, n)
                else:
                    slots.append((now, n))
                    line.count += 1
                live[key] = n
                messages[n] = Message(name, message_id, value, n, key, 0, now, "ready", 0, 0, None, None, None, now)
            except BaseException:
                ground.take_back(queue, n, None, latest)
                raise
        if marked:
            waiters.hint_each((*queue.put_hints, (key_topic(name, key), 1)))
        if keeps_events and log.latest >= log.tidy_at:
            tidy()
        return True

    return put


def adding(queue: MemoryQueue, ground: Ground) -> Callable[..., bool | None]:
    """Put one message that is due at once, under an id and a key that are free, into a queue without bounds."""
    tables, lock, now_ns, tidy = ground.tables, ground.lock, ground.now_ns, ground.tidy
    waiters, marked = ground.waiters, ground.waiters.marked
    messages, log, topics, keeps_events = tables.messages, tables.log, tables.log.topics, tables.log.keeps
    name, topic, ids, live = queue.name, queue.topic, queue.ids, queue.live

    def add(
        key: Any, value: Any, message_id: str, priority: int, max_attempts: int | None, dead_letter: str | None, metadata: Any
    ) -> bool | None:
        with lock:
            if key in live or not queue.is_unbounded or message_id in ids or (message_id.isdecimal() and queue.find(message_id)):
                return None
            now, latest = now_ns() // 1000, log.latest
            tables.last_number = n = tables.last_number + 1
            try:
                if keeps_events:
                    events = topics.get(topic)
                    if events is None or len(events) >= RETAINED:
                        events = log.topic(topic, now)
                    log.latest = index = log.latest + 1
                    events.append(KeptOne(index, now, "put", message_id, key, NOTHING))
                line = queue.lines.get(priority) or queue.line(priority)
                slots = line.line
                if slots and slots[-1][0] > now:
                    line.add(now, n)
                else:
                    slots.append((now, n))
                    line.count += 1
                ids[message_id] = n
                if key is not None:
                    live[key] = n
                # By position, because names would cost as much again.
                messages[n] = Message(
                    name, message_id, value, n, key, priority, now, "ready", 0, 0, max_attempts, dead_letter, None, now, "", 0, 0, 0,
                    "place", None, None, 0, (), metadata,
                )  # fmt: skip
            except BaseException:
                ground.take_back(queue, n, None, latest)
                raise
        if marked:
            waiters.hint_each(queue.put_hints if key is None else (*queue.put_hints, (key_topic(name, key), 1)))
        if keeps_events and log.latest >= log.tidy_at:
            tidy()
        return True

    return add


def claiming(queue: MemoryQueue, ground: Ground) -> Callable[[Any, str, float | None, ReturnTo], Message | None]:
    """Claim the first message that is due, where time has overtaken nobody, or the one under a key."""
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
                if message is None:
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
            if messages.get(n) is not message or message.queue != name or message.state != "leased" or (copies and key in copies):
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
        holder, token, since, history = message.holder, message.token, message.since, message.history
        with lock:
            if messages.get(n) is not message or message.queue != name or message.state != "leased" or (copies and key in copies):
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
                slots = line.line
                position = now if return_to == "back" else message.position if return_to == "place" else front_of(queue, priority, now)
                if slots and slots[-1][0] >= position:
                    line.add(position, n)
                else:
                    slots.append((position, n))
                    line.count += 1
                ending = Ending(holder, token, since, now, "released")
                messages[n] = Message(
                    name, message.id, message.value, n, key, priority, position, "ready", message.attempts, message.failures,
                    message.max_attempts, message.dead_letter, message.start_by, message.created_at, holder, token, since, until,
                    message.expired_to, message.dead_at, message.last_error, message.endings + 1,
                    (*history, ending)[-HISTORY:] if history else (ending,), message.metadata,
                )  # fmt: skip
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
    """Count the messages where time has overtaken nobody."""
    lock, now_ns = ground.lock, ground.now_ns

    def sizes() -> tuple[int, int] | None:
        with lock:
            if queue.late.count or queue.ends.is_due(now_ns() // 1000):
                return None
            return queue.ready_count() + len(queue.copies), queue.leased_count()

    return sizes
