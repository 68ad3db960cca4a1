"""Messages of one state in its order, as a transaction sees them."""

from collections.abc import Iterator

from holdfast.commands.transaction import Cursor, Filter
from holdfast.records import Message, State, moment_in
from holdfast.stores.lmdb.counts import Counts
from holdfast.stores.lmdb.layout import NUMBER, fitted, items_within, line_key, moment_key, scope, text_key
from holdfast.stores.lmdb.rows import BUFFERED, NO_HISTORY, Row, message_of

EVERY = Filter()


class Browsing(Counts):
    """What administrators ask: it costs by how much there is."""

    def browse(self, queue: str, state: State, which: Filter, after: Cursor | None, limit: int) -> Iterator[Message]:
        for row in self._in_order(queue, state, after):
            if which != EVERY and not self._fits(row, which):
                continue
            yield self._whole(row)
            limit -= 1
            if not limit:
                return

    def _fits(self, row: Row, which: Filter) -> bool:
        """Whether a filter lets a message through; what costs least is looked at first."""
        since = row.created_at if row.state != "dead" or row.dead_at is None else row.dead_at
        if which.older_than_s is not None and since >= self.now - moment_in(which.older_than_s):
            return False
        if which.newer_than_s is not None and since < self.now - moment_in(which.newer_than_s):
            return False
        if which.key_prefix is not None and not (row.key or "").startswith(which.key_prefix):
            return False
        return self._text_fits(row, which)

    def _text_fits(self, row: Row, which: Filter) -> bool:
        if which.error_contains is not None or which.error_class is not None:
            error = self._history(row).last_error or ""
            if which.error_contains not in (None, "") and (which.error_contains or "") not in error:
                return False
            if which.error_class is not None and error.partition(":")[0] != which.error_class:
                return False
        if which.label is not None or which.group is not None:
            message = message_of(row, NO_HISTORY, self._extra(row))
            if which.label not in (None, *message.labels) or which.group not in (None, message.group or ""):
                return False
        return which.value_contains is None or which.value_contains.encode() in bytes(self._whole(row).value)

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
