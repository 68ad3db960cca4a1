"""One queue in memory: its messages, found by id, by key, in claim order and by what time does to them."""

from bisect import insort
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.commands.hints import ALL
from holdfast.commands.topics import queue_topic, watch_topic
from holdfast.records import NEVER, Message, State
from holdfast.records.policies import Settings
from holdfast.stores.memory.lanes import QueueLanes
from holdfast.stores.memory.schedule import Schedule

if TYPE_CHECKING:
    from holdfast.stores import FastQueue

EMPTY = 16
"""So many priorities or holders may be out of use before it is worth looking which are."""


class MemoryQueue:
    """Which messages there are, by number; the messages themselves are in a table that all queues share."""

    # The store's lock guards all of it; the fast path reaches into these fields themselves.
    __slots__ = (
        "_sweep_at",
        "_sweep_holders_at",
        "copies",
        "dead",
        "delayed",
        "done",
        "ends",
        "fast",
        "holders",
        "ids",
        "is_plain",
        "is_unbounded",
        "lanes",
        "late",
        "lines",
        "live",
        "messages",
        "name",
        "now",
        "priorities",
        "put_hints",
        "since_sum",
        "topic",
        "watch_hints",
    )

    def __init__(self, name: str, messages: dict[int, Message]) -> None:
        self.name: str = name
        self.topic: str = queue_topic(name)
        self.watch_hints: tuple[tuple[str, int], ...] = ((watch_topic(self.topic), ALL),)
        self.put_hints: tuple[tuple[str, int], ...] = ((self.topic, 1), *self.watch_hints)
        self.is_unbounded: bool = False
        """Whether it was created, without a `maxsize`."""
        self.is_plain: bool = False
        """Whether besides it is not paused."""
        self.messages: dict[int, Message] = messages
        self.now: int = 0
        """The moment of the step that looks at the queue."""
        self.ids: dict[str, int] = {}
        """The messages whose id was given; the others' is their number."""
        self.live: dict[Hashable, int] = {}
        """The ready or leased message under each key."""
        self.copies: dict[Hashable, int] = {}
        """The buffered message under each key."""
        self.dead: Schedule = Schedule(self._is_dead_since)
        """The dead messages by burial."""
        self.holders: dict[str, dict[int, int]] = {}
        """The leased messages of each holder and since when they are, those claimed first in front; some may hold none any more."""
        self.since_sum: int = 0
        """The sum of these moments."""
        self.lines: dict[int, Schedule] = {}
        """The ready messages of each priority by position."""
        self.priorities: list[int] = []
        """Of the lines, negated: the highest first."""
        self.ends: Schedule = Schedule(self._ends_at)
        """The leased messages by lease end, but for those whose lease has none."""
        self.late: Schedule = Schedule(self._is_late_at)
        """The ready messages that were never handed out and must be by a moment, by that moment."""
        self.delayed: Schedule = Schedule(self._is_delayed_to)
        """The ready messages that are out of line until they are due, by position."""
        self.done: dict[int, None] = {}
        """The messages that are kept after they were done."""
        self.lanes: QueueLanes = QueueLanes(self._own_message)
        self.fast: FastQueue | None = None
        self._sweep_at = EMPTY
        self._sweep_holders_at = EMPTY

    def retire(self) -> None:
        """Forget everything, and ignore objects that still refer to it."""
        self.obey(None)
        self.ids.clear()
        self.live.clear()

    def empty(self) -> None:
        """Forget every message, but stay the queue that its fast path knows."""
        for table in (self.ids, self.live, self.copies, self.holders, self.done):
            table.clear()
        for schedule in (self.ends, self.late, self.delayed, self.dead, *self.lines.values()):
            schedule.empty()
        self.lanes.rebuild()
        self.since_sum = 0

    def obey(self, settings: Settings | None) -> None:
        """Remember what the settings say that every put and claim asks."""
        is_free = settings is not None and settings.maxsize is None
        self.is_unbounded = is_free and (settings is None or settings.policy is None or not settings.policy.has_lanes)
        self.is_plain = is_free and settings is not None and not settings.paused and not settings.shapes_claims

    def find(self, message_id: str) -> int | None:
        """The number of the message with this id."""
        n = self.ids.get(message_id)
        if n is None and message_id.isdecimal():
            message = self.messages.get(int(message_id))
            n = message.n if message is not None and message.id == message_id and message.queue == self.name else None
        return n

    def numbers(self) -> set[int]:
        """Of all its messages."""
        return {*self.ids.values(), *self.live.values(), *self.copies.values(), *self.done}

    def in_state(self, state: State) -> Iterator[Message]:
        """The messages in a state, in any order."""
        if state == "leased":
            return (
                message
                for holder, held in self.holders.items()
                for n in held
                if (message := self.messages.get(n)) and message.holder == holder and message.state == state
            )
        tables = {"dead": {n for _, n in (*self.dead.line, *self.dead.heap)}, "done": self.done, "buffered": self.copies.values()}
        numbers = self.numbers() if state == "ready" else tables[state]
        return (message for n in numbers if (message := self.messages.get(n)) and message.state == state)

    def enter(self, message: Message) -> None:
        """Keep a message, new or changed; a changed one has left before."""
        self.messages[message.n] = message
        self.ids[message.id] = message.n
        self._enter_orders(message)

    def change(self, before: Message, after: Message) -> None:
        """Keep another form of a message, under the same id."""
        self.messages[after.n] = after
        self.ids[after.id] = after.n
        self._leave_orders(before)
        self._enter_orders(after)

    def leave(self, message: Message) -> None:
        """Forget a message, as it was when it entered."""
        del self.messages[message.n]
        self.ids.pop(message.id, None)
        self._leave_orders(message)

    def _enter_orders(self, message: Message) -> None:
        n, key = message.n, message.key
        match message.state:
            case "ready":
                self.line(message.priority).add(message.position, n, ahead=message.position > self.now)
                if message.start_by is not None and not message.attempts:
                    self.late.add(message.start_by, n)
                if message.lane is not None:
                    self._enter_lane(message)
            case "leased":
                self.held_by(message.holder)[n] = message.since
                self.since_sum += message.since
                if message.until < NEVER:
                    self.ends.add(message.until, n)
            case _:
                self._enter_apart(message)
                return
        if key is not None:
            self.live[key] = n

    def _enter_apart(self, message: Message) -> None:
        """Keep a message that is neither ready nor leased."""
        if message.state == "dead":
            self.dead.add(message.dead_at or 0, message.n)
        elif message.state == "done":
            self.done[message.n] = None
        elif message.key is not None:
            self.copies[message.key] = message.n

    def _leave_orders(self, message: Message) -> None:
        n, key = message.n, message.key
        match message.state:
            case "ready":
                self.lines[message.priority].leave(n)
                if message.start_by is not None and not message.attempts:
                    self.late.leave(n)
                if message.lane is not None and message.rank is None:
                    self.delayed.leave(n)
            case "leased":
                del self.holders[message.holder][n]
                self.since_sum -= message.since
                if message.until < NEVER:
                    self.ends.leave(n)
            case _:
                self._leave_apart(message)
                return
        if key is not None and self.live.get(key) == n:
            del self.live[key]

    def _leave_apart(self, message: Message) -> None:
        if message.state == "dead":
            self.dead.leave(message.n)
        elif message.state == "done":
            del self.done[message.n]
        elif self.copies.get(message.key) == message.n:
            del self.copies[message.key]

    def extend(self, message: Message, until: int) -> None:
        """Give a lease another end; its place among its holder's stays."""
        self.messages[message.n] = replace(message, until=until)
        if message.until < NEVER:
            self.ends.leave(message.n)
        if until < NEVER:
            self.ends.add(until, message.n)

    def held_by(self, holder: str) -> dict[int, int]:
        """What a holder has; a new, empty table if need be."""
        held = self.holders.get(holder)
        if held is None:
            if len(self.holders) >= self._sweep_holders_at:
                self._sweep_holders()
            held = self.holders[holder] = {}
        return held

    def leased_count(self) -> int:
        return sum(map(len, self.holders.values()))

    def line(self, priority: int) -> Schedule:
        """The line of one priority; a new one if need be."""
        line = self.lines.get(priority)
        if line is None:
            if len(self.lines) >= self._sweep_at:
                self._sweep()
            line = self.lines[priority] = Schedule(self._stands_at)
            insort(self.priorities, -priority)
        return line

    def ready_count(self) -> int:
        return sum(line.count for line in self.lines.values())

    def first_position(self) -> int | None:
        """The earliest position of a ready message, late or not."""
        if self.late.is_due(self.now):
            return min(self._positions(), default=None)
        firsts = [line.first() for line in self.lines.values()]
        return min((first[0] for first in firsts if first is not None), default=None)

    def delayed_count(self) -> int:
        """How many ready messages are not due yet."""
        if self.late.is_due(self.now):  # Lines pass over who is late.
            return sum(position > self.now for position in self._positions())
        return sum(line.count_after(self.now) for line in self.lines.values() if line.count)

    def heads(self, limit: int) -> list[Message]:
        """The first messages that are due, in claim order."""
        found: list[Message] = []
        for negated in self.priorities:
            if len(found) >= limit:
                break
            line = self.lines[-negated]
            if line.count:
                found += [self.messages[n] for n in line.upto(self.now, limit - len(found))]
        return found

    def overdue(self, limit: int) -> list[Message]:
        """Whose lease has ended or who is late, the longest overdue first."""
        schedules = (self.ends, self.late, self.delayed)
        # One that is late and out of line stands in two of them.
        numbers = dict.fromkeys(n for schedule in schedules for n in schedule.upto(self.now, limit))
        return sorted([self.messages[n] for n in numbers], key=lambda message: (message.overdue_since, message.n))[:limit]

    def has_overdue(self) -> bool:
        """Whether there is such a message."""
        return any(schedule.count and schedule.is_due(self.now) for schedule in (self.ends, self.late, self.delayed))

    def next_due(self) -> int | None:
        """When, after now, the next message becomes due or its lease ends."""
        moments = [schedule.after(self.now) for schedule in (self.ends, *self.lines.values())]
        return min((moment for moment in moments if moment is not None), default=None)

    def next_due_in_lanes(self) -> int | None:
        """The same of a queue with lanes, where what is in line waits for its lane."""
        moments = [self.ends.after(self.now), self.delayed.after(self.now), self.lanes.next_wake()]
        return min((moment for moment in moments if moment is not None), default=None)

    def _enter_lane(self, message: Message) -> None:
        if message.rank is None:
            self.delayed.add(message.position, message.n)
        else:
            self.lanes.enter(message)

    def _own_message(self, n: int) -> Message | None:
        message = self.messages.get(n)
        return message if message is not None and message.queue == self.name else None

    def _is_delayed_to(self, position: int, n: int) -> bool:
        message = self._own_message(n)
        if message is None or message.state != "ready" or message.position != position:
            return False
        return message.lane is not None and message.rank is None

    def _is_dead_since(self, dead_at: int, n: int) -> bool:
        message = self._own_message(n)
        return message is not None and message.state == "dead" and (message.dead_at or 0) == dead_at

    def _positions(self) -> Iterator[int]:
        return (message.position for n in self.numbers() if (message := self.messages[n]).state == "ready")

    def _sweep(self) -> None:
        """Forget the lines without messages, but for the usual one, which is nearly always in use."""
        self.lines = {priority: line for priority, line in self.lines.items() if line.count or not priority}
        self.priorities = sorted(-priority for priority in self.lines)
        self._sweep_at = 2 * len(self.lines) + EMPTY

    def _sweep_holders(self) -> None:
        """Forget those who hold nothing."""
        for holder in [holder for holder, held in self.holders.items() if not held]:
            del self.holders[holder]
        self._sweep_holders_at = 2 * len(self.holders) + EMPTY

    def _stands_at(self, position: int, n: int) -> bool:
        # Of its priority it need not be asked: no message changes it.
        message = self.messages.get(n)
        return (
            message is not None
            and message.state == "ready"
            and message.position == position
            and message.queue == self.name
            # Who is late will never be handed out, so it does not stand in the way of the others.
            and (message.start_by is None or not message.is_late(self.now))
        )

    def _ends_at(self, until: int, n: int) -> bool:
        message = self.messages.get(n)
        return message is not None and message.state == "leased" and message.until == until and message.queue == self.name

    def _is_late_at(self, start_by: int, n: int) -> bool:
        message = self._own_message(n)
        return message is not None and message.state == "ready" and message.start_by == start_by and not message.attempts
