"""Counts the bytes of a namespace; never too low for the data that came through this server.

A count walks through everything that the namespace has, page by page. What is written from then on is added as it comes; what is removed is
noticed by the next count. A message or an entry counts as its texts and `RECORD_BYTES`. The log of a dict keeps every value that was
written, so that is added too, for as long as the log keeps it.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, get_args

from msgspec import Raw, Struct

from holdfast.commands import Acquire, Browse, Change, Command, Item, Names, Put, Read, Together, Write
from holdfast.commands.events import RETAINED, RETAINED_S
from holdfast.records import Entry, Message, State
from holdfast.records.policies import Kind, Settings
from holdfast.server.namespaces.commands import inside
from holdfast.server.namespaces.names import Namespace
from holdfast.stores import AsyncStore

RECORD_BYTES: Final = 200
"""What a message, an entry or an event takes beside its texts, roughly."""

PAGE_BYTES: Final = 4 * 1024 * 1024
PAGE: Final = 1_000
FIRST_PAGE: Final = 10
"""How much is read at once, in bytes and records; the first page of each is small, for its records may be large."""

LOG_PARTS: Final = 100
"""The log of a dict is remembered in so many parts, each of which is forgotten whole."""


def size_of(command: Command[Any]) -> int:
    """How many bytes more there are after the command, at most."""
    if isinstance(command, Put):
        return sum(map(_size, command.items))
    if isinstance(command, Write):
        return sum(map(_size_of_change, command.changes))
    if isinstance(command, Acquire) and command.default is not None:
        return _size_of_texts(command.key, command.default)
    return sum(map(size_of, command.commands)) if isinstance(command, Together) else 0


def logged_by(command: Command[Any]) -> list[tuple[str, int, int]]:
    """What the command adds to the logs of dicts: of each the name, the events and their bytes."""
    if isinstance(command, Write):
        return [(command.dict, len(command.changes), size_of(command))]
    return [part for step in command.commands for part in logged_by(step)] if isinstance(command, Together) else []


async def count_bytes(store: AsyncStore, namespace: Namespace) -> int:
    """Walk through everything of the namespace; what changes its state meanwhile may be missed or counted twice."""
    total = 0
    async for settings in all_names(store, namespace, "queue"):
        for state in get_args(State):
            async for page in _messages(store, settings.name, state):
                total += sum(map(_size, page))
    async for settings in all_names(store, namespace, "dict"):
        async for entries in _entries(store, settings.name):
            total += sum(_size_of_texts(entry.key, entry.value) for entry in entries)
    return total


async def all_names(store: AsyncStore, namespace: Namespace, kind: Kind) -> AsyncIterator[Settings]:
    """The queues or dicts of the namespace, as the store names them."""
    after: str | None = None
    while True:
        page = await store.execute(inside(Names(kind, after=after, limit=PAGE), namespace))
        for settings in page.settings:
            yield settings
        if not page.more:
            return
        after = namespace.outside(page.settings[-1].name)


class Logged:
    """What the log of one dict has kept since this server began: the last `RETAINED` events of the last day."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._parts: deque[_Part] = deque()

    def add(self, events: int, size_bytes: int) -> None:
        """Count events that were written."""
        now = self._now()
        last = self._parts[-1] if self._parts else None
        if last is None or last.events >= RETAINED // LOG_PARTS or now - last.begun_at > RETAINED_S / LOG_PARTS:
            self._parts.append(last := _Part(now))
        last.events += events
        last.size_bytes += size_bytes

    @property
    def size_bytes(self) -> int:
        """How many bytes are still kept."""
        while self._parts and self._is_over(self._parts[0]):
            self._parts.popleft()
        return sum(part.size_bytes for part in self._parts)

    def _is_over(self, first: "_Part") -> bool:
        is_old = self._now() - first.begun_at > RETAINED_S * (1 + 1 / LOG_PARTS)
        return is_old or sum(part.events for part in self._parts) - first.events >= RETAINED


class _Part(Struct):
    begun_at: float
    events: int = 0
    size_bytes: int = 0


async def _messages(store: AsyncStore, queue: str, state: State) -> AsyncIterator[list[Message]]:
    limit, after = FIRST_PAGE, None
    while True:
        page = await store.execute(Browse(queue, state=state, after=after, limit=limit))
        yield page.messages
        after = page.after
        if after is None:
            return
        limit = _next_limit(page.messages, sum(map(_size, page.messages)))


async def _entries(store: AsyncStore, name: str) -> AsyncIterator[list[Entry]]:
    limit, after = FIRST_PAGE, None
    while True:
        page = await store.execute(Read(name, after=after, limit=limit))
        yield page.entries
        if not page.more:
            return
        after = page.entries[-1].key
        limit = _next_limit(page.entries, sum(len(entry.value) for entry in page.entries))


def _next_limit(page: list[Any], size_bytes: int) -> int:
    return max(FIRST_PAGE, min(PAGE, len(page) * PAGE_BYTES // max(size_bytes, 1)))


def _size(message: Message | Item) -> int:
    return _size_of_texts(message.id, message.value) + len(message.key or "") + (0 if message.metadata is None else len(message.metadata))


def _size_of_change(change: Change) -> int:
    return 0 if change.do in ("delete", "compare") else _size_of_texts(change.key, change.value or _NUMBER)


def _size_of_texts(key: str, value: Raw) -> int:
    return RECORD_BYTES + len(key) + len(value)


_NUMBER: Final = Raw(b"-9007199254740991")
"""As long as what an increment writes."""
