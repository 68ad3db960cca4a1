"""Undoes a step that a signal handler interrupted."""

from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from holdfast.stores.memory.tables import Tables

ABSENT: Final = object()

TRIES: Final = 100
"""How often taking back may be interrupted itself."""


class Undo:
    """What one step is about to change, as it is before.

    Only what the rest can be worked out from is noted: lines, counts and orders are rebuilt. That costs by how much the store holds, but
    only an interrupt pays for it.
    """

    __slots__ = ("_before", "_latest", "_moved_to", "_tables", "queues")

    def __init__(self, tables: Tables, latest: int) -> None:
        self._tables = tables
        self._latest = latest
        self._moved_to = tables.moved_to
        self._before: list[tuple[MutableMapping[Any, Any], Any, Any]] = []
        self.queues: set[str] = set()
        """The queues whose messages the step changes."""

    def note(self, table: MutableMapping[Any, Any], key: Any) -> None:
        """Say that what stands under the key is about to change."""
        self._before.append((table, key, table.get(key, ABSENT)))

    def note_before(self, table: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Say what stood under the key before, None for nothing."""
        self._before.append((table, key, ABSENT if value is None else value))

    def take_back(self) -> None:
        """Put everything back, however often that is interrupted: the first interrupt goes on from here, and tells enough."""
        if not self._before and self._tables.log.latest == self._latest:
            return
        for left in reversed(range(TRIES)):
            try:
                self._put_back()
            except BaseException:
                if not left:
                    raise
            else:
                return

    def _put_back(self) -> None:
        tables = self._tables
        for table, key, value in reversed(self._before):
            if value is ABSENT:
                table.pop(key, None)
            else:
                table[key] = value
        tables.moved_to = self._moved_to
        tables.log.cut(self._latest)
        tables.dicts.rebuild()
        tables.shares.rebuild()
        tables.browsing.forget()
        rebuild(tables, self.queues)


def rebuild(tables: Tables, names: Iterable[str]) -> None:
    """Work out everything that is known of these queues from their messages again."""
    messages = sorted(tables.messages.values(), key=lambda message: (message.since, message.n))
    for name in names:
        queue = tables.queue(name)
        queue.empty()
        queue.obey(tables.settings["queue"].get(name))
        for message in messages:
            if message.queue == name:
                queue.enter(message)
