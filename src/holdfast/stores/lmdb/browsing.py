"""Messages of one state in its order, as a transaction sees them."""

from collections.abc import Iterator
from itertools import islice

from holdfast.commands.transaction import Cursor
from holdfast.records import Message, State
from holdfast.stores.lmdb.counts import Counts
from holdfast.stores.lmdb.layout import NUMBER, fitted, items_within, line_key, moment_key, scope, text_key
from holdfast.stores.lmdb.rows import BUFFERED, Row


class Browsing(Counts):
    """What administrators ask: it costs by how much there is."""

    def browse(self, queue: str, state: State, after: Cursor | None, limit: int, *, values: bool = True) -> Iterator[Message]:
        return map(self._whole if values else self._bare, islice(self._in_order(queue, state, after), limit))

    def _in_order(self, queue: str, state: State, after: Cursor | None) -> Iterator[Row]:
        start = scope(queue)
        for _, value in self._standing_in(start, state, after):
            row = self._row_at(fitted(start, value[NUMBER.size :] if state == "ready" else value))
            if row is not None:
                yield row

    def _standing_in(self, start: bytes, state: State, after: Cursor | None) -> Iterator[tuple[bytes, bytes]]:
        tables = self.tables
        match state, after:
            case "ready", (int(priority), int(position), int(n)):
                return items_within(self.txn.cursor(tables.ready), start, line_key(start, -priority, position, n))
            case "ready", _:
                return items_within(self.txn.cursor(tables.ready), start)
            case "buffered", (str(key), int()):
                return items_within(self.txn.cursor(tables.keys), start + BUFFERED, text_key(start + BUFFERED, key))
            case "buffered", _:
                return items_within(self.txn.cursor(tables.keys), start + BUFFERED)
        table = {"leased": tables.leased, "dead": tables.dead, "done": tables.done}[state]
        match after:
            case (int(moment), int(n)):
                return items_within(self.txn.cursor(table), start, moment_key(start, moment, n))
        return items_within(self.txn.cursor(table), start)
