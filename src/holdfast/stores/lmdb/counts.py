"""Sizes, ages and holders of a queue, as a transaction sees them: keys are counted, and rows read of the first claims only.

LMDB knows how many keys a table has, so a count costs by the smaller of what is counted and the rest of its table.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile

from holdfast.commands.stats import HELD_SEEN, Tally, size_of_part
from holdfast.stores.lmdb.layout import (
    LAST,
    PRIORITY_BYTES,
    below,
    fitted,
    items_within,
    moment_in_key,
    moment_key,
    position_in,
    scope,
)
from holdfast.stores.lmdb.lines import Lines
from holdfast.stores.lmdb.rows import BUFFERED, Row
from holdfast.stores.lmdb.tables import Handle


class Counts(Lines):
    """The part of a transaction that counts."""

    def tally(self, queue: str) -> Tally:
        start = scope(queue)
        tables = self.tables
        ready, leased, dead, done = (self._count(table, start) for table in (tables.ready, tables.leased, tables.dead, tables.done))
        buffered = self._count(tables.keys, start + BUFFERED)
        ended = size_of_part(
            leased, lambda most: _length(self._past(tables.leased, start), most), lambda most: _length(self._lasting(start), most)
        )
        held = list(islice(self._held(start), HELD_SEEN)) if leased > ended else []
        delayed, position = self._line_sizes(start, ready) if ready else (0, None)
        return Tally(
            ready=ready,
            delayed=delayed,
            first_position=position,
            buffered=buffered,
            leased=leased - ended,
            ended=ended,
            first_since=min((row.since for row in held), default=None),
            mean_since=sum(row.since for row in held) / len(held) if held else None,
            dead=dead,
            first_dead_at=next((moment_in_key(start, key) for key, _ in items_within(self.txn.cursor(self.tables.dead), start)), None),
            holders=dict(Counter(row.holder for row in held)),
            done=done,
        )

    def _count(self, table: Handle, start: bytes) -> int:
        """How many keys lie in a scope."""
        return size_of_part(
            self.txn.stat(table)["entries"],
            lambda most: self._number_in(table, start, most),
            lambda most: self._number_outside(table, start, most),
        )

    def _number_in(self, table: Handle, start: bytes, most: int) -> int:
        cursor = self.txn.cursor(table)
        if not cursor.set_range(start):
            return 0
        keys = takewhile(lambda key: key.startswith(start), cursor.iternext(values=False))
        return _length(keys, most)

    def _number_outside(self, table: Handle, start: bytes, most: int) -> int:
        before = takewhile(lambda key: key < start, self.txn.cursor(table).iternext(values=False))
        # From the end of the table back to the scope.
        behind = takewhile(lambda key: key > start and not key.startswith(start), self.txn.cursor(table).iterprev(values=False))
        return _length(chain(before, behind), most)

    def _lasting(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        return items_within(self.txn.cursor(self.tables.leased), start, moment_key(start, self.now, LAST))

    def _held(self, start: bytes) -> Iterator[Row]:
        for _, id_ in self._lasting(start):
            row = self._row_at(fitted(start, id_))
            if row is not None:
                yield row

    def _line_sizes(self, start: bytes, ready: int) -> tuple[int, int | None]:
        """How many ready messages are not due, and the first position."""
        lines = list(self._lines(start))
        delayed = size_of_part(ready, lambda most: self._delayed(lines, most), lambda most: _length(self._due_in(start, lines), most))
        return delayed, min((next(self._positions(start, line)) for line in lines), default=None)

    def _delayed(self, lines: Sequence[bytes], most: int) -> int:
        behind = (items_within(self.txn.cursor(self.tables.ready), line, moment_key(line, self.now, LAST)) for line in lines)
        return _length(chain.from_iterable(behind), most)

    def _due_in(self, start: bytes, lines: Sequence[bytes]) -> Iterator[int]:
        for line in lines:
            yield from takewhile(lambda position: position <= self.now, self._positions(start, line))

    def _positions(self, start: bytes, line: bytes) -> Iterator[int]:
        return (position_in(start, key) for key, _ in items_within(self.txn.cursor(self.tables.ready), line))

    def _lines(self, start: bytes) -> Iterator[bytes]:
        """Where the line of each priority begins."""
        cursor = self.txn.cursor(self.tables.ready)
        seek: bytes | None = start
        while seek is not None and cursor.set_range(seek) and (key := cursor.key()).startswith(start):
            yield key[: len(start) + PRIORITY_BYTES]
            seek = below(start, key)


def _length(things: Iterable[object], most: int) -> int:
    """How many there are, up to a bound."""
    return sum(1 for _ in islice(things, most))
