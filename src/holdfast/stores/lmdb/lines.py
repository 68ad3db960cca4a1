"""The messages of an environment, as a transaction reads them."""

from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from itertools import islice

from holdfast.commands.allowance import Allowance
from holdfast.commands.transaction import Line
from holdfast.records import Message
from holdfast.stores.lmdb.lanes import Lanes
from holdfast.stores.lmdb.layout import (
    LAST,
    NUMBER,
    PRIORITY_BYTES,
    below,
    fitted,
    items_within,
    line_start,
    moment_in_key,
    moment_key,
    position_in,
    scope,
    text_key,
)
from holdfast.stores.lmdb.rows import BUFFERED, LIVING, Row
from holdfast.stores.lmdb.tables import Handle


class Lines(Lanes):
    """What a claim, a put and a settlement ask."""

    def messages(self, queue: str, ids: Collection[str], *, values: bool = False) -> Iterable[Message]:
        start = scope(queue)
        if values:
            return (self._whole(row) for id_ in ids if (row := self._row_at(text_key(start, id_))) is not None)
        return [self._bare(row) for id_ in ids if (row := self._row_at(text_key(start, id_))) is not None]

    def keyed(self, queue: str, keys: Collection[str]) -> list[Message]:
        start = scope(queue)
        places = [text_key(start + part, key) for part in (LIVING, BUFFERED) for key in set(keys)]
        return [self._bare(row) for place in places if (row := self._keyed_row(start, place)) is not None]

    def _keyed_row(self, start: bytes, place: bytes) -> Row | None:
        id_ = self.txn.get(place, db=self.tables.keys)
        return None if id_ is None else self._row_at(fitted(start, id_))

    def line(self, queue: str, limit: int, overdue_limit: int) -> Line:
        settings = self.settings("queue", queue)
        # A claim under the rules of a policy asks again, for a part of it.
        if settings is None or settings.paused or (settings.is_ruled and limit and overdue_limit):
            return Line(settings, [], [])
        start = scope(queue)
        if settings.policy is not None and settings.policy.has_lanes:
            return Line(settings, [], self._overdue(start, overdue_limit), self._next_due_in_lanes(start))
        heads = self._heads(start, limit)
        return Line(settings, heads, self._overdue(start, overdue_limit), None if heads else self._next_due(start))

    def _heads(self, start: bytes, limit: int) -> list[Message]:
        """The first in line, as many as one answer can bring."""
        rows = (self._row_at(fitted(start, id_)) for id_ in islice(self._due(start), limit))
        return Allowance().fitting(self._whole(row) for row in rows if row is not None)

    def _due(self, start: bytes) -> Iterator[bytes]:
        """Where the due messages stand, in the order of the line; late ones are passed over."""
        now = self.now
        cursor = self.txn.cursor(self.tables.ready)
        seek: bytes | None = start
        while seek is not None and cursor.set_range(seek):
            seek = None
            for key, value in cursor.iternext():
                if not key.startswith(start):
                    return
                if position_in(start, key) > now:
                    seek = below(start, key)
                    break
                if moment_in_key(b"", value) > now:
                    yield value[NUMBER.size :]

    def _overdue(self, start: bytes, limit: int) -> list[Message]:
        ended = self._past(self.tables.leased, start)
        late = self._past(self.tables.starts, start)
        due = self._past(self.tables.delayed, start)
        # One that is late and out of line stands in two orders.
        first = islice(dict.fromkeys(id_ for _, id_ in merge(ended, late, due)), limit)
        return [self._bare(row) for id_ in first if (row := self._row_at(fitted(start, id_))) is not None]

    def _past(self, table: Handle, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key, id_ in items_within(self.txn.cursor(table), start):
            if moment_in_key(start, key) > self.now:
                return
            yield key, id_

    def head_position(self, queue: str, priority: int) -> int | None:
        start = scope(queue)
        line = line_start(start, priority)
        for key, _ in items_within(self.txn.cursor(self.tables.ready), line):
            return position_in(start, key)
        return None

    def _next_due_in_lanes(self, start: bytes) -> int | None:
        """What is in line waits for its lane."""
        tables, behind = self.tables, moment_key(start, self.now, LAST)
        ahead = [islice(items_within(self.txn.cursor(table), start, behind), 1) for table in (tables.leased, tables.delayed)]
        moments = [moment_in_key(start, key) for found in ahead for key, _ in found]
        wakes = self._next_wake(start)
        return min(moments if wakes is None else [*moments, wakes], default=None)

    def _next_due(self, start: bytes) -> int | None:
        ends = items_within(self.txn.cursor(self.tables.leased), start, moment_key(start, self.now, LAST))
        moments = [moment_in_key(start, key) for key, _ in islice(ends, 1)]
        cursor = self.txn.cursor(self.tables.ready)
        seek: bytes | None = start
        while seek is not None and cursor.set_range(seek) and (key := cursor.key()).startswith(start):
            line, seek = key[: len(start) + PRIORITY_BYTES], below(start, key)
            ahead = items_within(cursor, line, moment_key(line, self.now, LAST))
            moments += [position_in(start, key) for key, _ in islice(ahead, 1)]
        return min(moments, default=None)
