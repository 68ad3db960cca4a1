"""The events of an environment and the answers to repeated commands, as a transaction sees them."""

from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct as Form

from msgspec import Raw

from holdfast.commands.topics import watch_topic
from holdfast.commands.transaction import ALL, Draft
from holdfast.records import Event
from holdfast.stores.lmdb.layout import NUMBER, fitted, items_within, moment_in_key, moment_start, scope, text_key
from holdfast.stores.lmdb.step import Step

_HEAD = Form(">QqB")
"""Count within the topic, moment and length of the name, before name and data."""

_LAST = b"\xff" * NUMBER.size
_PRUNED = b"pruned"
"""In `about`: the topic at which the last pruning stopped."""


class Log(Step):
    """The event half of a transaction."""

    _latest: int | None = None

    def append(self, drafts: Sequence[Draft]) -> int:
        first = self.latest() + 1
        moment = moment_start(self.now)
        events, numbers = [], []
        counts: dict[str, int] = {}
        for n, draft in enumerate(drafts, first):
            topic, number, name = draft.topic, NUMBER.pack(n), draft.event.encode()
            start = scope(topic)
            count = counts[topic] = (counts[topic] if topic in counts else self._last_count(start)) + 1
            events.append((start + number, _HEAD.pack(count, self.now, len(name)) + name + bytes(draft.data)))
            numbers.append((number, moment + start))
        self._put_all(self.tables.events, events)
        self.txn.cursor(self.tables.numbers).putmulti(numbers, append=True)
        for topic in counts:
            self.hints[watch_topic(topic)] = ALL
        self.appended += len(drafts)
        self._latest = first + len(drafts) - 1
        return first

    def latest(self) -> int:
        if self._latest is None:
            cursor = self.txn.cursor(self.tables.numbers)
            self._latest = NUMBER.unpack(cursor.key())[0] if cursor.last() else 0
        return self._latest

    def _last_count(self, start: bytes) -> int:
        """The count of the topic's newest event, 0 where it has none."""
        cursor = self.txn.cursor(self.tables.events)
        is_there = cursor.prev() if cursor.set_range(start + _LAST) else cursor.last()
        return _count(cursor.value()) if is_there and cursor.key().startswith(start) else 0

    def floor(self, topic: str) -> int:
        return self._floor(scope(topic))

    def _floor(self, start: bytes) -> int:
        number = self.txn.get(start, db=self.tables.floors)
        return 0 if number is None else int(NUMBER.unpack(number)[0])

    def changes(self, topic: str, after: int, limit: int) -> tuple[list[Event], int]:
        start, events = scope(topic), list[Event]()
        behind = start + NUMBER.pack(after) if after > 0 else b""
        for key, encoded in items_within(self.txn.cursor(self.tables.events), start, behind):
            if len(events) >= limit:
                break
            _, at, size = _HEAD.unpack_from(encoded)
            data = _HEAD.size + size
            index = NUMBER.unpack_from(key, len(start))[0]
            events.append(Event(index, topic, encoded[_HEAD.size : data].decode(), Raw(encoded[data:]), at))
        return events, events[-1].index if len(events) == limit else max(after, self.latest())

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        dropped = self._drop(self._older(min(older_than, never_after), limit))
        oldest = self.txn.cursor(self.tables.numbers)
        if dropped >= limit or not oldest.first() or self.latest() - NUMBER.unpack(oldest.key())[0] < keep:
            return dropped
        return dropped + self._prune_topics(keep, never_after, limit - dropped)

    def _older(self, before: int, limit: int) -> list[tuple[bytes, bytes]]:
        """Topic and number of the oldest events."""
        found: list[tuple[bytes, bytes]] = []
        for number, value in items_within(self.txn.cursor(self.tables.numbers), b""):
            if len(found) >= limit or moment_in_key(b"", value) >= before:
                break
            found.append((value[NUMBER.size :], number))
        return found

    def _prune_topics(self, keep: int, never_after: int, limit: int) -> int:
        """Drop what topics have beyond `keep`, as many topics as events at most; the next call goes on from there."""
        dropped = 0
        begin = topic = self.txn.get(_PRUNED, b"", db=self.tables.about)
        for topic in islice(self._topics(begin), limit):
            dropped += self._drop(self._beyond(topic, keep, never_after, limit - dropped))
            if dropped >= limit:
                break
        if topic != begin:
            self.txn.put(_PRUNED, topic, db=self.tables.about)
        return dropped

    def _topics(self, begin: bytes) -> Iterator[bytes]:
        """The scopes of all topics behind `begin`, then those up to it."""
        cursor = self.txn.cursor(self.tables.events)
        is_there = cursor.set_range(begin + _LAST) if begin else cursor.first()
        while is_there:
            topic = cursor.key()[: -NUMBER.size]
            yield topic
            is_there = cursor.set_range(topic + _LAST)
        is_there = bool(begin) and cursor.first()
        while is_there and (topic := cursor.key()[: -NUMBER.size]) <= begin:
            yield topic
            is_there = cursor.set_range(topic + _LAST)

    def _beyond(self, topic: bytes, keep: int, never_after: int, limit: int) -> list[tuple[bytes, bytes]]:
        """The events of a topic that are more than it keeps."""
        found: list[tuple[bytes, bytes]] = []
        first_kept = self._last_count(topic) - keep + 1
        for key, encoded in items_within(self.txn.cursor(self.tables.events), topic):
            count, at, _ = _HEAD.unpack_from(encoded)
            if len(found) >= limit or count >= first_kept or at >= never_after:
                break
            found.append((topic, key[len(topic) :]))
        return found

    def _drop(self, events: Sequence[tuple[bytes, bytes]]) -> int:
        floors: dict[bytes, bytes] = {}
        dropped = 0
        newest = NUMBER.pack(self.latest())
        for topic, number in events:
            dropped += self.txn.delete(topic + number, db=self.tables.events)
            floors[topic] = max(number, floors.get(topic, b""))
            # The newest number is the counter, so it stays when its event goes.
            if number != newest:
                self.txn.delete(number, db=self.tables.numbers)
        for topic, number in floors.items():
            if NUMBER.unpack(number)[0] > self._floor(topic):
                self.txn.put(topic, number, db=self.tables.floors)
        return dropped

    def forget_answers(self, before: int, limit: int) -> int:
        old: list[tuple[bytes, bytes]] = []
        for key, id_ in items_within(self.txn.cursor(self.tables.answered), b""):
            if len(old) >= limit or moment_in_key(b"", key) >= before:
                break
            old.append((key, id_))
        for key, id_ in old:
            self.txn.delete(key, db=self.tables.answered)
            self.txn.delete(fitted(b"", id_), db=self.tables.answers)
        return len(old)

    def recall(self, command_id: str) -> bytes | None:
        return self.txn.get(text_key(b"", command_id), db=self.tables.answers)

    def record(self, command_id: str, note: bytes) -> None:
        self.txn.put(text_key(b"", command_id), note, db=self.tables.answers)
        # Behind the moment so much of the id as makes it one of its own.
        self.txn.put(text_key(moment_start(self.now), command_id), command_id.encode(), db=self.tables.answered)


def _count(encoded: bytes) -> int:
    return int(_HEAD.unpack_from(encoded)[0])
