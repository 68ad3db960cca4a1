"""The messages of an environment, as a transaction changes them."""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.records import Message, Receipt, ReturnTo
from holdfast.stores.files.extra import EXTRA
from holdfast.stores.lmdb.layout import NUMBER, items_within, scope, text_key
from holdfast.stores.lmdb.lines import Lines
from holdfast.stores.lmdb.log import Log
from holdfast.stores.lmdb.rows import (
    LARGE_BYTES,
    NO_HISTORY,
    History,
    Lined,
    Row,
    encode,
    is_large,
    key_place,
    row_of,
    standing,
)
from holdfast.stores.lmdb.tables import Handle


class Messages(Lines, Log):
    """The queue half of a transaction."""

    _added = 0

    def add(self, messages: Sequence[Message]) -> None:
        # Numbers grow with those of the events, so they need no counter: every put has written its event by now.
        first = self.first_n(self.latest()) + self._added
        self._added += len(messages)
        for message in messages:
            if message.n:
                # Of another message of this number, which a release removed that knows no extra fields.
                self._drop_extra(message.n)
        self._enter([self._new_row(message, message.n or n) for n, message in enumerate(messages, first)])

    def _new_row(self, message: Message, n: int) -> Row:
        """The row of a message that is added; what lies apart from it is saved."""
        self._save_extra(message, n)
        if message.endings:
            self.txn.put(NUMBER.pack(n), encode(History(message.last_error, message.history)), db=self.tables.histories)
        value = bytes(message.value)
        if len(value) <= LARGE_BYTES:
            return row_of(message, n, value)
        self.txn.put(NUMBER.pack(n), value, db=self.tables.values)
        return row_of(message, n, None)

    def _save_extra(self, message: Message, n: int) -> None:
        extra = EXTRA.write(message)
        if extra is not None:
            self.txn.put(NUMBER.pack(n), extra, db=self.tables.extras)

    def _drop_extra(self, n: int) -> None:
        self.txn.delete(NUMBER.pack(n), db=self.tables.extras)

    def _enter(self, rows: Sequence[Row]) -> None:
        self._save(rows)
        self._stand(rows)
        self._name(rows)

    def lease(self, messages: Sequence[Message], holder: str, token: int, until: int, expired_to: ReturnTo) -> None:
        rows, now = self._as_kept(messages), self.now
        ties = {message.n: message.tied for message in messages if message.tied}
        leased = [
            replace(
                row,
                state="leased",
                attempts=row.attempts + 1,
                holder=holder,
                token=token,
                since=now,
                until=until,
                expired_to=expired_to,
                lined=replace(row.lined or Lined(), tied=ties[row.n]) if row.n in ties else row.lined,
            )
            for row in rows
        ]
        self._rearrange(rows, leased)

    def extend(self, messages: Sequence[Message], until: int) -> None:
        before = self._as_kept(messages)
        self._rearrange(before, [replace(row, until=until) for row in before])
        self._note_moment()

    def renew_claim(self, receipt: Receipt, until: int, *, progress: bool) -> bool:
        row = self._row_at(text_key(scope(receipt.queue), receipt.id))
        if row is None or row.state != "leased" or row.token != receipt.token or row.until <= self.now:
            return False
        self._rearrange([row], [replace(row, until=until, failures=0 if progress else row.failures)])
        self._note_moment()
        return True

    def _rearrange(self, before: Sequence[Row], after: Sequence[Row]) -> None:
        """Save messages that stand elsewhere now, under the same id and key."""
        self._leave(before)
        self._save(after)
        self._stand(after)

    def remove(self, messages: Sequence[Message]) -> None:
        self._remove_rows(self._as_kept(messages))

    def _remove_rows(self, rows: Sequence[Row]) -> None:
        self._leave(rows)
        self._unname(rows)
        for row in rows:
            self.txn.delete(row.place, db=self.tables.messages)
            self._drop_apart(row)
            del self._rows[row.n]

    def _drop_apart(self, row: Row) -> None:
        """Remove what lies apart from the row."""
        self._drop_extra(row.n)
        if row.value is None:
            self.txn.delete(NUMBER.pack(row.n), db=self.tables.values)
        if row.endings:
            self.txn.delete(NUMBER.pack(row.n), db=self.tables.histories)

    def save_messages(self, messages: Sequence[Message]) -> None:
        messages = [message for message in messages if message.n in self._rows]
        before = self._as_kept(messages)
        after = [row_of(message, message.n, row.value) for row, message in zip(before, messages, strict=True)]
        self._leave(before)
        self._unname(before)
        for old, new, message in zip(before, after, messages, strict=True):
            if old.place != new.place:
                self.txn.delete(old.place, db=self.tables.messages)
            self._save_history(old, message)
        self._enter(after)

    def _save_history(self, old: Row, message: Message) -> None:
        if message.endings == old.endings:
            return
        history = History(message.last_error, message.history)
        if history == NO_HISTORY:
            self.txn.delete(NUMBER.pack(old.n), db=self.tables.histories)
        else:
            self.txn.put(NUMBER.pack(old.n), encode(history), db=self.tables.histories)

    def revalue(self, messages: Sequence[Message]) -> None:
        rows = []
        messages = [message for message in messages if message.n in self._rows]
        for row, message in zip(self._as_kept(messages), messages, strict=True):
            value = bytes(message.value)
            if is_large(message.value):
                self.txn.put(NUMBER.pack(row.n), value, db=self.tables.values)
            elif row.value is None:
                self.txn.delete(NUMBER.pack(row.n), db=self.tables.values)
            self._drop_extra(row.n)
            self._save_extra(message, row.n)
            metadata = None if message.metadata is None else bytes(message.metadata)
            rows.append(replace(row, value=None if is_large(message.value) else value, metadata=metadata))
        self._save(rows)

    def _clear_queue(self, queue: str) -> int:
        start, tables = scope(queue), self.tables
        places = [place for place, _ in items_within(self.txn.cursor(tables.messages), start)]
        for place in places:
            row = self._row_at(place)
            if row is not None:
                self._drop_apart(row)
        for table in (
            *(tables.messages, tables.ready, tables.starts, tables.leased, tables.dead, tables.keys),
            *(tables.lines, tables.delayed, tables.done),
        ):
            self._empty(table, start)
        self._rows.clear()
        return len(places)

    def _empty(self, table: Handle, start: bytes) -> None:
        cursor = self.txn.cursor(table)
        is_there = cursor.set_range(start)
        while is_there and cursor.key().startswith(start):
            is_there = cursor.delete()

    def _as_kept(self, messages: Sequence[Message]) -> list[Row]:
        """The rows of messages that this very step has not removed."""
        return [self._rows[message.n] for message in messages if message.n in self._rows]

    def _save(self, rows: Sequence[Row]) -> None:
        self._put_all(self.tables.messages, [(row.place, encode(row)) for row in rows])
        for row in rows:
            self._rows[row.n] = row

    def _stand(self, rows: Sequence[Row]) -> None:
        """Enter the messages into the orders of their states."""
        orders: dict[Handle, list[tuple[bytes, bytes]]] = {}
        for row in rows:
            for table, key, value in standing(self.tables, row):
                orders.setdefault(table, []).append((key, value))
        for table, items in orders.items():
            self._put_all(table, items)

    def _leave(self, rows: Sequence[Row]) -> None:
        for row in rows:
            for table, key, _ in standing(self.tables, row):
                self.txn.delete(key, db=table)

    def _name(self, rows: Sequence[Row]) -> None:
        """Let their keys point to the messages."""
        for row in rows:
            place = key_place(row)
            if place is not None:
                self.txn.put(place, row.id.encode(), db=self.tables.keys)

    def _unname(self, rows: Sequence[Row]) -> None:
        for row in rows:
            place = key_place(row)
            if place is not None:
                self.txn.delete(place, db=self.tables.keys)
