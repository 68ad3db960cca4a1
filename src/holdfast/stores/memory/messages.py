"""The messages of a memory store, as a transaction sees them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec import Raw, Struct
from msgspec.structs import replace

from holdfast.commands.stats import Tally
from holdfast.commands.transaction import Cursor, Line, OpenLanes
from holdfast.records import UPDATED, Message, Receipt, ReturnTo, State
from holdfast.records.policies import Lane, LaneOrder
from holdfast.stores.memory.browsing import first_in, first_page, page_behind
from holdfast.stores.memory.queue import MemoryQueue
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.undo import Undo


class Messages:
    """The queue half of a transaction. Reading a value costs nothing here, so every message comes with its own."""

    undo: Undo

    def __init__(self, tables: Tables, now: int) -> None:
        self.tables = tables
        self.now = now

    def messages(self, queue: str, ids: Collection[str], *, values: bool = False) -> list[Message]:
        del values
        found, messages = self.tables.queues.get(queue), self.tables.messages
        return [messages[n] for message_id in ids if (n := found.find(message_id)) is not None] if found else []

    def keyed(self, queue: str, keys: Collection[str]) -> list[Message]:
        found = self._found(queue)
        if found is None:
            return []
        different = dict.fromkeys(keys)
        live = [self.tables.messages[found.live[key]] for key in different if key in found.live]
        return live + [self.tables.messages[found.copies[key]] for key in different if key in found.copies]

    def line(self, queue: str, limit: int, overdue_limit: int) -> Line:
        settings = self.tables.settings["queue"].get(queue)
        found = self._found(queue)
        # A claim under the rules of a policy asks again, for a part of it.
        if found is None or settings is None or settings.paused or (settings.is_ruled and limit and overdue_limit):
            return Line(settings, [], [])
        if settings.policy is not None and settings.policy.has_lanes:
            return Line(settings, [], found.overdue(overdue_limit), found.next_due_in_lanes())
        heads = found.heads(limit)
        return Line(settings, heads, found.overdue(overdue_limit), None if heads else found.next_due())

    def head_position(self, queue: str, priority: int) -> int | None:
        found = self._found(queue)
        first = found.lines[priority].first() if found and priority in found.lines else None
        return None if first is None else first[0]

    def browse(self, queue: str, state: State, after: Cursor | None, limit: int, *, values: bool = True) -> list[Message]:
        del values
        found = self._found(queue)
        if found is None:
            return []
        if after is None:
            page = first_in(found, state, limit)
            return first_page(found, state, limit) if page is None else page
        if (behind := page_behind(found, state, after, limit)) is not None:
            return behind
        tables = self.tables
        # A put raises the first, a claim the second, and what else changes a message does either of it, ends a claim, or adds a message.
        version = (tables.last_number, tables.log.latest, found.leased_count(), len(tables.messages))
        page = tables.browsing.order(found, state, version).page(after, limit)
        if len(page) < limit:
            tables.browsing.forget()
        return page

    def tally(self, queue: str) -> Tally:
        found = self._found(queue)
        if found is None:
            return Tally()
        holding = holding_of(found)
        return Tally(
            ready=found.ready_count(),
            delayed=found.delayed_count(),
            first_position=found.first_position(),
            buffered=len(found.copies),
            leased=holding.count,
            ended=found.leased_count() - holding.count,
            first_since=holding.oldest,
            mean_since=holding.since_sum / holding.count if holding.count else None,
            dead=found.dead.count,
            first_dead_at=None if (buried := found.dead.first()) is None else buried[0],
            holders=holding.holders,
            done=len(found.done),
        )

    def add(self, messages: Sequence[Message]) -> None:
        for message in messages:
            n = message.n or self.tables.last_number + 1
            self.tables.last_number = n if not message.n else max(n, self.tables.last_number)
            kept = replace(message, n=n, value=self._kept(message.value), metadata=message.metadata and message.metadata.copy())
            self._note_message(kept)
            self._queue(message.queue).enter(kept)

    def lease(self, messages: Sequence[Message], holder: str, token: int, until: int, expired_to: ReturnTo) -> None:
        now = self.now
        for queue, before, message in self._changing(messages):
            queue.change(before, before.leased(holder, token, now, until, expired_to, tied=message.tied))

    def extend(self, messages: Sequence[Message], until: int) -> None:
        for queue, message, _ in self._changing(messages):
            queue.extend(message, until)

    def renew_claim(self, receipt: Receipt, until: int, *, progress: bool) -> bool:
        queue = self._found(receipt.queue)
        message = self.tables.messages.get(queue.find(receipt.id) or 0) if queue else None
        if queue is None or message is None or message.token != receipt.token or not message.held_at(self.now):
            return False
        self._note_message(message)
        queue.extend(replace(message, failures=0) if progress and message.failures else message, until)
        return True

    def remove(self, messages: Sequence[Message]) -> None:
        for queue, message, _ in self._changing(messages):
            queue.leave(message)

    def save_messages(self, messages: Sequence[Message]) -> None:
        for message in messages:
            before = self.tables.messages.get(message.n)
            if before is not None:
                self._change(before, message if message.value is before.value else message.valued(before.value))

    def revalue(self, messages: Sequence[Message]) -> None:
        for message in messages:
            before = self.tables.messages.get(message.n)
            if before is not None:
                self._note_message(before)
                # Its place in every order stays, so it need not leave and enter.
                given = {name: getattr(message, name) for name in UPDATED}
                given["metadata"] = message.metadata and message.metadata.copy()
                self.tables.messages[message.n] = replace(before, value=self._kept(message.value), **given)

    def lanes(self, queue: str, names: Collection[str]) -> dict[str, Lane]:
        found = self._found(queue)
        return {name: found.lanes.known[name] for name in names if name in found.lanes.known} if found else {}

    def find_lanes(self, queue: str, by: LaneOrder, limit: int, prefix: str = "", after: str | None = None) -> list[Lane]:
        found = self._found(queue)
        return found.lanes.find(by, limit, prefix, after, self.now) if found else []

    def open_lanes(self, queue: str, limit: int) -> OpenLanes:
        found = self._found(queue)
        if found is None:
            return OpenLanes(is_overdue=False, lanes=[])
        is_overdue = found.has_overdue() or found.lanes.is_due(self.now)
        return OpenLanes(is_overdue, found.lanes.opened(limit, self.now))

    def lane_heads(self, queue: str, counts: Mapping[str, int]) -> dict[str, list[Message]]:
        found = self._found(queue)
        return found.lanes.heads(counts, self.now) if found else {}

    def save_lanes(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            queue = self._queue(lane.queue)
            self.undo.note(queue.lanes.known, lane.name)
            self.undo.queues.add(lane.queue)
            queue.lanes.save(lane)

    def _clear_queue(self, queue: str) -> int:
        found = self.tables.queues.get(queue)
        if found is None:
            return 0
        numbers = found.numbers()
        self.undo.queues.add(queue)
        self.undo.note(self.tables.queues, queue)
        for n in numbers:
            self.undo.note(self.tables.messages, n)
        del self.tables.queues[queue]
        for n in numbers:
            del self.tables.messages[n]
        found.retire()
        return len(numbers)

    def _found(self, name: str) -> MemoryQueue | None:
        queue = self.tables.queues.get(name)
        if queue is not None:
            queue.now = self.now
        return queue

    def _queue(self, name: str) -> MemoryQueue:
        queue = self.tables.queue(name)
        queue.now = self.now
        return queue

    def _changing(self, messages: Sequence[Message]) -> list[tuple[MemoryQueue, Message, Message]]:
        """Each message that is still there, behind its queue and itself as it is now; it is noted that they are about to change."""
        known, undo, queue = self.tables.messages, self.undo, None
        found = []
        for message in messages:
            before = known.get(message.n)
            if before is None:
                continue
            if queue is None or queue.name != before.queue:
                queue = self._queue(before.queue)
                undo.queues.add(before.queue)
            undo.note_before(known, before.n, before)
            found.append((queue, before, message))
        return found

    def _change(self, before: Message, after: Message) -> None:
        self._note_message(before)
        if before.queue != after.queue or before.id != after.id:
            self.undo.queues.add(after.queue)
            self._queue(before.queue).leave(before)
            self._queue(after.queue).enter(after)
        elif before.state == after.state == "leased" and before.until == after.until:
            self.tables.messages[after.n] = after  # Its place among its holder's stays.
        else:
            self._queue(after.queue).change(before, after)

    def _note_message(self, message: Message) -> None:
        """Say that this message, which is there or new, is about to change."""
        self.undo.note(self.tables.messages, message.n)
        self.undo.queues.add(message.queue)

    def _kept(self, value: Raw) -> Raw:
        """A value that does not hold on to the buffer it was read from, nor changes with it."""
        return value if self.tables.by_reference else value.copy()


class Holding(Struct, frozen=True):
    """Who holds messages of a queue, and since when."""

    holders: dict[str, int]
    oldest: int | None
    count: int
    since_sum: int


def holding_of(queue: MemoryQueue) -> Holding:
    """Costs by how many hold something and how many leases have ended unseen, not by how much is leased."""
    ended = {n: queue.messages[n] for n in queue.ends.upto(queue.now, queue.ends.count)} if queue.ends.is_due(queue.now) else {}
    gone = Counter(message.holder for message in ended.values())
    counts = {holder: len(held) - gone[holder] for holder, held in queue.holders.items()}
    firsts = [next((since for n, since in held.items() if n not in ended), None) for held in queue.holders.values()]
    return Holding(
        {holder: count for holder, count in counts.items() if count},
        min((since for since in firsts if since is not None), default=None),
        sum(counts.values()),
        queue.since_sum - sum(message.since for message in ended.values()),
    )
