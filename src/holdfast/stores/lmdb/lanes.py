"""The lanes of queues in an environment, as a transaction sees them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from struct import Struct as Form

from msgspec import msgpack

from holdfast.commands.allowance import ANSWER_BYTES
from holdfast.commands.transaction import OpenLane, OpenLanes
from holdfast.records import Message
from holdfast.records.policies import Lane, LaneOrder
from holdfast.stores.lmdb.layout import LAST, NUMBER, fitted, items_within, moment_in_key, moment_start, scope, scope_in, text_key
from holdfast.stores.lmdb.names import Names
from holdfast.stores.lmdb.rows import lane_start

_TURN = Form(">QI")

_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(Lane).decode


class Lanes(Names):
    """The part of a transaction that groups use."""

    def lanes(self, queue: str, names: Collection[str]) -> dict[str, Lane]:
        start = scope(queue)
        found = {name: self.txn.get(text_key(start, name), db=self.tables.lanes) for name in names}
        return {name: _decode(encoded) for name, encoded in found.items() if encoded is not None}

    def find_lanes(self, queue: str, by: LaneOrder, limit: int, prefix: str = "", after: str | None = None) -> list[Lane]:
        start, tables = scope(queue), self.tables
        if by == "name":
            behind = b"" if after is None else start + after.encode()
            return [
                _decode(encoded)
                for _, encoded in islice(items_within(self.txn.cursor(tables.lanes), start + prefix.encode(), behind), limit)
            ]
        names = self._woken_lanes(start) if by == "wakes" else self._open_lanes(start)
        found = (self.txn.get(start + name, db=tables.lanes) for name in islice(names, limit))
        return [_decode(encoded) for encoded in found if encoded is not None]

    def open_lanes(self, queue: str, limit: int) -> OpenLanes:
        start, tables = scope(queue), self.tables
        found, size = list[OpenLane](), 0
        for name in islice(self._open_lanes(start), limit):
            encoded = self.txn.get(start + name, db=tables.lanes)
            if encoded is None:
                continue
            lane = _decode(encoded)
            rows = [self._row_at(fitted(start, id_)) for id_ in islice(self._in_lane(queue, lane.name), 2)]
            first = self._whole(rows[0]) if rows and rows[0] is not None else None
            found.append(OpenLane(lane, first, rows[1].position if len(rows) > 1 and rows[1] is not None else None))
            if first is not None and (size := size + len(first.value)) > ANSWER_BYTES:
                break
        return OpenLanes(self._has_overdue(start), found)

    def _has_overdue(self, start: bytes) -> bool:
        """Whether time has overtaken a message or a lane."""
        tables = self.tables
        for table in (tables.leased, tables.starts, tables.delayed, tables.asleep_lanes):
            cursor = self.txn.cursor(table)
            if cursor.set_range(start) and (key := cursor.key()).startswith(start) and moment_in_key(start, key) <= self.now:
                return True
        return False

    def _open_lanes(self, start: bytes) -> Iterator[bytes]:
        return (key[len(start) + _TURN.size :] for key, _ in items_within(self.txn.cursor(self.tables.open_lanes), start))

    def _woken_lanes(self, start: bytes) -> Iterator[bytes]:
        for key, _ in items_within(self.txn.cursor(self.tables.asleep_lanes), start):
            if moment_in_key(start, key) > self.now:
                return
            yield key[len(start) + NUMBER.size :]

    def _next_wake(self, start: bytes) -> int | None:
        first = next(items_within(self.txn.cursor(self.tables.asleep_lanes), start), None)
        return None if first is None else moment_in_key(start, first[0])

    def lane_heads(self, queue: str, counts: Mapping[str, int]) -> dict[str, list[Message]]:
        start = scope(queue)
        found = {}
        for name, count in counts.items():
            rows = (self._row_at(fitted(start, id_)) for id_ in islice(self._in_lane(queue, name), count))
            heads = [self._bare(row) for row in rows if row is not None]
            if heads:
                found[name] = heads
        return found

    def _in_lane(self, queue: str, name: str) -> Iterator[bytes]:
        for _, value in items_within(self.txn.cursor(self.tables.lines), lane_start(queue, name)):
            if moment_in_key(b"", value) > self.now:
                yield value[NUMBER.size :]

    def _histories(self) -> Iterator[str]:
        """The queues that keep messages which are done."""
        cursor = self.txn.cursor(self.tables.done)
        is_there = cursor.first()
        while is_there:
            start = scope_in(cursor.key())
            row = self._row_at(fitted(start, cursor.value()))
            if row is not None:
                yield row.queue
            is_there = cursor.set_range(start + NUMBER.pack(LAST) * 3)

    def save_lanes(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            start, name = scope(lane.queue), lane.name.encode()
            encoded = self.txn.get(start + name, db=self.tables.lanes)
            if encoded is not None:
                self._forget_order(start, name, _decode(encoded))
            if lane.is_gone:
                self.txn.delete(start + name, db=self.tables.lanes)
                continue
            self.txn.put(start + name, _encode(lane), db=self.tables.lanes)
            if lane.open:
                self.txn.put(start + _TURN.pack(lane.turn, lane.place) + name, b"", db=self.tables.open_lanes)
            if lane.wakes is not None:
                self.txn.put(start + moment_start(lane.wakes) + name, b"", db=self.tables.asleep_lanes)

    def _forget_order(self, start: bytes, name: bytes, lane: Lane) -> None:
        if lane.open:
            self.txn.delete(start + _TURN.pack(lane.turn, lane.place) + name, db=self.tables.open_lanes)
        if lane.wakes is not None:
            self.txn.delete(start + moment_start(lane.wakes) + name, db=self.tables.asleep_lanes)
