"""Going through the messages of a queue for those that a filter lets through, a bounded number of them in one command."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Protocol

from holdfast.commands.argument_checks import STATES
from holdfast.commands.claim_line import with_values
from holdfast.commands.stats import Place
from holdfast.commands.transaction import Cursor, Filter, Transaction
from holdfast.records import Message, State

LOOKED_AT: Final = 1_000
"""So many messages a command looks at, at most, to find those that a filter lets through: it costs by this, not by the queue."""

EVERY: Final = Filter()


def cursor(message: Message) -> Cursor:
    """Where a message stands in the order of its state."""
    match message.state:
        case "ready":
            return message.order
        case "leased":
            return (message.until, message.n)
        case "dead":
            return (message.dead_at or 0, message.n)
        case "buffered":
            return (message.key or "", message.n)
        case "done":
            return (message.ended_at or 0, message.n)


class Asked(Protocol):
    """A command on the messages of one state that a filter lets through."""

    @property
    def queue(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def which(self) -> Filter: ...
    @property
    def after(self) -> Cursor | None: ...
    @property
    def limit(self) -> int: ...


class Walk:
    """Goes through the messages of a queue, up to the bound, for those that a filter lets through."""

    def __init__(self, tx: Transaction, queue: str, which: Filter) -> None:
        self._tx = tx
        self._queue = queue
        self._which = which
        self._left = LOOKED_AT
        self._last: Message | None = None
        self._brings_values = which.value_contains is not None

    @property
    def place(self) -> Place | None:
        """Where to go on, None where it came to the end."""
        return None if self._left or self._last is None else Place(self._last.state, cursor(self._last))

    def some(self, asked: Asked) -> Iterable[Message]:
        """The first that are asked for, with their values."""
        if asked.which == EVERY:
            return self._tx.browse(asked.queue, asked.state, asked.after, asked.limit)
        found = islice(self.found(asked.state, asked.after), asked.limit)
        return found if self._brings_values else with_values(self._tx, asked.queue, list(found))

    def behind(self, found: list[Message], asked: Asked) -> Cursor | None:
        """Where to go on after these."""
        if len(found) == asked.limit:
            return cursor(found[-1])
        return None if self.place is None else self.place.cursor

    def found(self, state: State, after: Cursor | None) -> Iterator[Message]:
        """Those of one state behind a place, without their values unless the filter asks for these."""
        for message in self._tx.browse(self._queue, state, after, self._left, values=self._brings_values):
            self._left -= 1
            self._last = message
            if self._which.matches(message, self._tx.now) and self._which.matches_value(message.value):
                yield message

    def found_behind(self, place: Place | None) -> Iterator[Message]:
        """Those of the whole queue behind a place, its states in the order of `STATES`."""
        for state in STATES if place is None else STATES[STATES.index(place.state) :]:
            yield from self.found(state, place.cursor if place is not None and state == place.state else None)
            if not self._left:
                return


def page_of(tx: Transaction, asked: Asked) -> tuple[list[Message], Cursor | None]:
    """The messages that are asked for, as many as the answer takes, and where to go on."""
    walk = Walk(tx, asked.queue, asked.which)
    page = tx.allowance.fitting(walk.some(asked))
    return page, cursor(page[-1]) if tx.allowance.is_cut else walk.behind(page, asked)


def chosen(tx: Transaction, asked: Asked) -> tuple[list[Message], Cursor | None]:
    """The same, however large they are."""
    walk = Walk(tx, asked.queue, asked.which)
    found = list(walk.some(asked))
    return found, walk.behind(found, asked)
