"""The base of all parts of a transaction."""

from collections.abc import Sequence

import lmdb
from msgspec import Raw

from holdfast.clock import Clock
from holdfast.commands.allowance import Allowance
from holdfast.commands.hints import Hints
from holdfast.records import NO_VALUE, Message
from holdfast.stores.lmdb.layout import NUMBER
from holdfast.stores.lmdb.rows import NO_HISTORY, History, Row, decode_history, decode_row, message_of
from holdfast.stores.lmdb.tables import Handle, Tables

MOMENT = b"moment"
"""In `about`."""


class Step:
    """One transaction of LMDB, the time, and what was read so far."""

    def __init__(self, txn: "lmdb.Transaction[bytes]", tables: Tables, clock: Clock) -> None:
        self.txn = txn
        self.tables = tables
        self.now: int = clock.now_us()
        self._clock = clock
        self.allowance: Allowance = Allowance()
        self.reserved: dict[str, int] = {}
        self.hints: Hints = Hints()
        self.appended = 0
        # Rows as they are now, by number: whatever is changed was read before, in the same transaction.
        self._rows: dict[int, Row] = {}

    @property
    def wall_offset(self) -> int:
        return self._clock.wall_offset_us()

    def _row_at(self, place: bytes) -> Row | None:
        encoded = self.txn.get(place, db=self.tables.messages)
        if encoded is None:
            return None
        row = decode_row(encoded)
        self._rows[row.n] = row
        return row

    def _history(self, row: Row) -> History:
        if not row.endings:
            return NO_HISTORY
        encoded = self.txn.get(NUMBER.pack(row.n), db=self.tables.histories)
        return NO_HISTORY if encoded is None else decode_history(encoded)

    def _extra(self, row: Row) -> bytes | None:
        return self.txn.get(NUMBER.pack(row.n), db=self.tables.extras)

    def _bare(self, row: Row) -> Message:
        """The message of a row, without its value."""
        return message_of(row, self._history(row), self._extra(row))

    def _whole(self, row: Row) -> Message:
        value = row.value
        if value is None:
            value = self.txn.get(NUMBER.pack(row.n), db=self.tables.values)
        return message_of(row, self._history(row), self._extra(row), NO_VALUE if value is None else Raw(value))

    def _note_moment(self) -> None:
        """Remember when something was written that no event records: time must never go back behind it."""
        self.txn.put(MOMENT, NUMBER.pack(self.now), db=self.tables.about)

    def _put_all(self, table: Handle, items: Sequence[tuple[bytes, bytes]]) -> None:
        if len(items) == 1:
            self.txn.put(*items[0], db=table)
        elif items:
            self.txn.cursor(table).putmulti(items)
