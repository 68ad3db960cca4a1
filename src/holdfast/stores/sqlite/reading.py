"""Reading messages in a transaction on a SQLite file, and where their values lie."""

from collections.abc import Iterable, Iterator
from sqlite3 import Cursor as SqlCursor
from typing import Any

from msgspec import Raw

from holdfast.records import Message
from holdfast.stores.sqlite.rows import IS_APART, NUMBER, VALUE, read_message
from holdfast.stores.sqlite.statements import SQL


class Reading:
    """The base of all parts of a transaction that read messages."""

    sql: SqlCursor
    now: int
    _apart: frozenset[int] = frozenset()
    """The rows read in this transaction whose values lie apart."""

    def _with_values(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Message]:
        """Messages of rows that end with the value, which is elsewhere if it is large, and then read with its message."""
        for row in rows:
            value = row[VALUE]
            if value is None:
                self._apart |= {row[NUMBER]}
                (value,) = self.sql.execute(SQL["large_value"], (row[NUMBER],)).fetchone()
            yield read_message(row, Raw(value))

    def _bare(self, row: tuple[Any, ...]) -> Message:
        """The message of a row that ends with whether its value lies apart."""
        if row[IS_APART]:
            self._apart |= {row[NUMBER]}
        return read_message(row)


def apart(sql: SqlCursor) -> SqlCursor:
    """Another cursor of the same connection, for rows that are read one by one while other statements are executed."""
    cursor = sql.connection.cursor()
    cursor.row_factory = sql.row_factory
    return cursor
