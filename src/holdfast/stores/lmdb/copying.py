"""Copy commands on an LMDB environment."""

from collections.abc import Iterator

from msgspec import json

from holdfast.commands import Copying
from holdfast.commands.transaction import Fenced
from holdfast.stores.lmdb.dicts import Dicts, fence_of
from holdfast.stores.lmdb.environment import MOVED, TARGET_AT
from holdfast.stores.lmdb.layout import items_within, name_in, scope, scope_in
from holdfast.stores.lmdb.messages import Messages
from holdfast.stores.lmdb.numbers import BATCH, LARGE

COPYING = b"copying"
"""In `about`."""

EVERY = 2**31


class Copies(Messages, Dicts):
    """The copying half of a transaction."""

    def next_n(self) -> int:
        return self.first_n(self.latest() + 1)

    def fenced(self, after: tuple[str, str]) -> Iterator[Fenced]:
        name, key = after
        behind = scope(name) + key.encode() if name else b""
        for place, encoded in items_within(self.txn.cursor(self.tables.entries), b"", behind):
            fence = fence_of(encoded)
            start = scope_in(place)
            found = None if not fence else name if start == scope(name) else self._dict_name(start)
            if found is not None:
                yield Fenced(found, place[len(start) :].decode(), fence)

    def _dict_name(self, start: bytes) -> str | None:
        """The name of a scope. A long one is only a digest there: if the dict was dropped, its name is not known."""
        name = name_in(start)
        if name is not None:
            return name
        return next((settings.name for settings in self.names("dict", "", None, EVERY) if scope(settings.name) == start), None)

    def raise_numbers(self, number: int, n: int, *, lost: bool) -> None:
        latest, n = self.latest(), max(n, self.next_n())
        # A message's number is that of an event and a little, so a count that is far behind must begin elsewhere.
        self.append_at(max(number, latest + 1, -(-n // BATCH) if n < LARGE * BATCH else 0))
        if lost:
            self._note_gap(self.latest(), latest)
        if self.latest() >= LARGE:
            self.begin_count(self.latest(), n)

    def copying(self) -> Copying | None:
        encoded = self.txn.get(COPYING, db=self.tables.about)
        return None if encoded is None else json.decode(encoded, type=Copying)

    def save_copying(self, copying: Copying | None) -> None:
        if copying is None:
            self.txn.delete(COPYING, db=self.tables.about)
        else:
            self.txn.put(COPYING, json.encode(copying), db=self.tables.about)

    def seal(self, to: str, target_at: int | None) -> None:
        self.txn.put(MOVED, to.encode(), db=self.tables.about)
        if target_at is not None:
            self.txn.put(TARGET_AT, str(target_at).encode(), db=self.tables.about)
