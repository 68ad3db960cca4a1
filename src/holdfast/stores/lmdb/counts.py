"""Sizes, ages and holders of a queue, as a transaction sees them: keys are counted, and rows read of the first claims only."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice, takewhile

from holdfast.commands.stats import HELD_SEEN, Tally
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

FEW = 10_000
"""So many due messages are counted before those that are not due are."""


class Counts(Lines):
    """The part of a transaction that counts."""

    def tally(self, queue: str) -> Tally:
        start = scope(queue)
        tables = self.tables
        ready, leased, dead, done = (self._count(table, start) for table in (tables.ready, tables.leased, tables.dead, tables.done))
        buffered = self._count(tables.keys, start + BUFFERED)
        ended = sum(1 for _ in self._past(self.tables.leased, start)) if leased else 0
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
        cursor = self.txn.cursor(table)
        if not cursor.set_range(start):
            return 0
        return sum(1 for _ in takewhile(lambda key: key.startswith(start), cursor.iternext(values=False)))

    def _held(self, start: bytes) -> Iterator[Row]:
        for _, id_ in items_within(self.txn.cursor(self.tables.leased), start, moment_key(start, self.now, LAST)):
            row = self._row_at(fitted(start, id_))
            if row is not None:
                yield row

    def _line_sizes(self, start: bytes, ready: int) -> tuple[int, int | None]:
        """How many ready messages are not due, and the first position; costs by the smaller part, due or not."""
        due, positions, lines = 0, list[int](), list(self._lines(start))
        for line in lines:
            keys = items_within(self.txn.cursor(self.tables.ready), line)
            places = (position_in(start, key) for key, _ in keys)
            first = next(places, None)
            if first is None:
                continue
            positions.append(first)
            due += sum(1 for _ in islice(takewhile(lambda place: place <= self.now, chain((first,), places)), FEW))
        if due < FEW:
            return ready - due, min(positions, default=None)
        behind = (items_within(self.txn.cursor(self.tables.ready), line, moment_key(line, self.now, LAST)) for line in lines)
        return sum(1 for _ in chain.from_iterable(behind)), min(positions, default=None)

    def _lines(self, start: bytes) -> Iterator[bytes]:
        """Where the line of each priority begins."""
        cursor = self.txn.cursor(self.tables.ready)
        seek: bytes | None = start
        while seek is not None and cursor.set_range(seek) and (key := cursor.key()).startswith(start):
            yield key[: len(start) + PRIORITY_BYTES]
            seek = below(start, key)
