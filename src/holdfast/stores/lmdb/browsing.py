"""Messages of one state in its order, and sizes and ages, as a transaction sees them."""

from collections import Counter
from collections.abc import Iterator

from holdfast.commands.stats import Tally
from holdfast.commands.transaction import Cursor, Filter
from holdfast.records import Message, State, moment_in
from holdfast.stores.lmdb.layout import NUMBER, fitted, items_within, line_key, moment_key, position_in, scope, text_key
from holdfast.stores.lmdb.lines import Lines
from holdfast.stores.lmdb.rows import BUFFERED, NO_HISTORY, Row, message_of


class Browsing(Lines):
    """What administrators ask: it costs by how much there is."""

    def browse(self, queue: str, state: State, which: Filter, after: Cursor | None, limit: int) -> Iterator[Message]:
        before = None if which.older_than_s is None else self.now - moment_in(which.older_than_s)
        for row in self._in_order(queue, state, after):
            since = row.dead_at if state == "dead" else row.created_at
            if before is not None and (since is None or since >= before):
                continue
            if which.key_prefix is not None and not (row.key or "").startswith(which.key_prefix):
                continue
            if which.error_contains is not None and which.error_contains not in (self._history(row).last_error or ""):
                continue
            if which.label is not None and which.label not in message_of(row, NO_HISTORY, self._extra(row)).labels:
                continue
            if which.group is not None and which.group != (message_of(row, NO_HISTORY, self._extra(row)).group or ""):
                continue
            yield self._whole(row)
            limit -= 1
            if not limit:
                return

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

    def _count(self, start: bytes, state: State) -> int:
        return sum(1 for _ in self._standing_in(start, state, None))

    def tally(self, queue: str) -> Tally:
        start, now = scope(queue), self.now
        positions = [position_in(start, key) for key, _ in self._standing_in(start, "ready", None)]
        leased = list(self._in_order(queue, "leased", None))
        held = [row for row in leased if row.until > now]
        buried = next(self._in_order(queue, "dead", None), None)
        return Tally(
            ready=len(positions),
            delayed=sum(position > now for position in positions),
            first_position=min(positions, default=None),
            buffered=self._count(start, "buffered"),
            leased=len(held),
            ended=len(leased) - len(held),
            first_since=min((row.since for row in held), default=None),
            mean_since=sum(row.since for row in held) / len(held) if held else None,
            dead=self._count(start, "dead"),
            first_dead_at=None if buried is None else buried.dead_at,
            holders=dict(Counter(row.holder for row in held)),
            done=self._count(start, "done"),
        )
