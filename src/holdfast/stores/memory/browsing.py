"""Pages of a queue's messages in the order of their state."""

from bisect import bisect_right
from heapq import nsmallest

from msgspec import Struct

from holdfast.commands.filtered import cursor
from holdfast.commands.transaction import Cursor
from holdfast.records import NEVER, Message, State
from holdfast.stores.memory.queue import MemoryQueue

Version = tuple[int, ...]
"""Changes whenever a message may have come, gone or moved."""


class Order(Struct, frozen=True):
    """The numbers of a queue's messages in one state, and where they stand, at one version of the store."""

    queue: MemoryQueue
    state: State
    version: Version
    places: list[Cursor]
    numbers: list[int]

    def page(self, after: Cursor, limit: int) -> list[Message]:
        """The first messages behind a place."""
        first, messages = bisect_right(self.places, place(self.state, after)), self.queue.messages
        return [messages[n] for n in self.numbers[first : first + limit]]


class Browsing:
    """The order that was last worked out: with it a page costs by its length, as long as nothing changes in between."""

    def __init__(self) -> None:
        self._order: Order | None = None

    def order(self, queue: MemoryQueue, state: State, version: Version) -> Order:
        """Where the messages in a state stand."""
        order = self._order
        if order is None or order.queue is not queue or order.state != state or order.version != version:
            found = sorted((place(state, cursor(message)), message.n) for message in queue.in_state(state))
            order = self._order = Order(queue, state, version, [at for at, _ in found], [n for _, n in found])
        return order

    def forget(self) -> None:
        self._order = None


def first_in(queue: MemoryQueue, state: State, limit: int) -> list[Message] | None:
    """The first messages in a state where that costs no more than these: lines pass over who is late, and others have no order."""
    if state == "dead":
        return [queue.messages[n] for n in queue.dead.upto(NEVER, limit)]
    if state == "leased":
        return _first_leased(queue, limit)
    if state != "ready" or queue.late.is_due(queue.now):
        return None
    found: list[Message] = []
    for negated in queue.priorities:
        found += [queue.messages[n] for n in queue.lines[-negated].upto(NEVER, limit - len(found))]
    return found


def page_behind(queue: MemoryQueue, state: State, after: Cursor, limit: int) -> list[Message] | None:
    """The first messages behind a place, where they stand in an order that is kept: see `first_in`."""
    found: list[int] = []
    match state, after:
        case "dead", (int(moment), int(n)):
            found = queue.dead.behind((moment, n), limit)
        case "leased", (int(moment), int(n)):
            found = queue.ends.behind((moment, n), limit)
            if len(found) < limit and queue.ends.count < queue.leased_count():
                return None
        case "ready", (int(highest), int(position), int(n)) if not queue.late.is_due(queue.now):
            for negated in queue.priorities:
                line, left = queue.lines[-negated], limit - len(found)
                if negated == highest:
                    found += line.behind((position, n), left)
                elif negated > highest:
                    found += line.upto(NEVER, left)
        case _:
            return None
    return [queue.messages[n] for n in found]


def _first_leased(queue: MemoryQueue, limit: int) -> list[Message] | None:
    """Those whose leases end first, where there are as many or no others: leases without an end stand in no order."""
    found = [queue.messages[n] for n in queue.ends.upto(NEVER, limit)]
    return found if len(found) == limit or queue.ends.count == queue.leased_count() else None


def first_page(queue: MemoryQueue, state: State, limit: int) -> list[Message]:
    """The first messages, without an order of all: a second page is seldom asked for."""
    return nsmallest(limit, queue.in_state(state), key=lambda message: place(state, cursor(message)))


def place(state: State, at: Cursor) -> Cursor:
    """The cursor in a form that sorts, even where a key is any object."""
    return at if state != "buffered" or isinstance(at[0], str) else (repr(at[0]), at[1])
