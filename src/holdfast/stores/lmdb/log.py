"""The events of an environment and the answers to repeated commands, as a transaction sees them.

Events lie by number alone: an order by topic would cost every command more than it saves a watch, which reads on from where it was.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from struct import Struct as Form

from msgspec import Raw

from holdfast.commands.hints import ALL
from holdfast.commands.topics import watch_topic
from holdfast.commands.transaction import Draft, Stretch
from holdfast.records import Event
from holdfast.stores.lmdb.layout import NUMBER, fitted, items_within, moment_in_key, moment_start, scope, text_key
from holdfast.stores.lmdb.numbers import Numbers

STRETCH = 20_000
"""How many events one reading of the log walks at most."""

_HEAD = Form(">qHB")
"""Moment, length of the topic and of the name, before topic, name and data. An event of no topic was pruned: its number is the counter."""

_TOPIC = Form(">QQ")
"""How many events a topic has, as far as they were counted, and the highest number that was pruned."""

_COUNTED, _PRUNED = b"counted", b"pruned"
"""In `about`: up to which number events are in the counts of topics, and at which topic the last pruning stopped."""

Found = tuple[int, bytes, int]
"""Number, topic and moment of an event."""


class Log(Numbers):
    """The event half of a transaction."""

    def append(self, drafts: Sequence[Draft]) -> int:
        first = self._next_number()
        rows = []
        for n, draft in enumerate(drafts, first):
            topic, name = draft.topic.encode(), draft.event.encode()
            rows.append((NUMBER.pack(n), _HEAD.pack(self.now, len(topic), len(name)) + topic + name + bytes(draft.data)))
            self.hints[watch_topic(draft.topic)] = ALL
        self.txn.cursor(self.tables.events).putmulti(rows, append=True)
        self.appended += len(drafts)
        self._latest = first + len(drafts) - 1
        return first

    def append_at(self, number: int) -> None:
        """Let the log go on above a number, and every event before count as pruned."""
        self.txn.put(NUMBER.pack(number), _HEAD.pack(self.now, 0, 0), db=self.tables.events)
        self._raise_floor(number)
        self.appended += 1
        self._latest = number

    def changes(self, topic: str, after: int, limit: int) -> Stretch:
        was_skipped, floor = self.was_skipped(after), max(self._floor(), self._counts(scope(topic))[1])
        after = max(after, floor)
        rows = self._rows_behind(after)
        events = self.allowance.fitting(islice(_events(topic, islice(rows, STRETCH)), limit))
        if len(events) == limit or self.allowance.is_cut:
            return Stretch(events, events[-1].index, floor, was_skipped)
        rest = next(rows, None)
        upto = max(after, self.latest() if rest is None else NUMBER.unpack(rest[0])[0] - 1)
        return Stretch(events, upto, floor, was_skipped)

    def _rows_behind(self, after: int) -> Iterator[tuple[bytes, bytes]]:
        return items_within(self.txn.cursor(self.tables.events), b"", NUMBER.pack(max(after, 0)))

    def _found(self, after: int) -> Iterator[Found]:
        for number, encoded in self._rows_behind(after):
            at, size, _ = _HEAD.unpack_from(encoded)
            yield NUMBER.unpack(number)[0], encoded[_HEAD.size : _HEAD.size + size], at

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        return self._forget_answers(never_after, limit) + self._prune_events(keep, older_than, never_after, limit)

    def _prune_events(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        self._count_topics()
        before = min(older_than, never_after)
        dropped = self._drop(list(takewhile(lambda found: found[2] < before, islice(self._found(0), limit))))
        if dropped >= limit or self.txn.stat(self.tables.events)["entries"] <= keep:
            return dropped
        return dropped + self._prune_topics(keep, never_after, limit - dropped)

    def _count_topics(self) -> None:
        """Bring the counts of topics up to date with the log."""
        counted = NUMBER.unpack(self.txn.get(_COUNTED, NUMBER.pack(0), db=self.tables.about))[0]
        if counted == self.latest():
            return
        for topic, more in Counter(topic for _, topic, _ in self._found(counted)).items():
            if topic:
                start = scope(topic.decode())
                count, floor = self._counts(start)
                self.txn.put(start, _TOPIC.pack(count + more, floor) + topic, db=self.tables.topics)
        self.txn.put(_COUNTED, NUMBER.pack(self.latest()), db=self.tables.about)

    def _counts(self, start: bytes) -> tuple[int, int]:
        encoded = self.txn.get(start, db=self.tables.topics)
        return (0, 0) if encoded is None else _TOPIC.unpack_from(encoded)

    def _prune_topics(self, keep: int, never_after: int, limit: int) -> int:
        """Drop what topics have beyond `keep`, as many topics as events at most; the next call goes on from there."""
        dropped = 0
        begin = stopped = self.txn.get(_PRUNED, b"", db=self.tables.about)
        for start, encoded in self._topics_behind(begin, limit):
            stopped = start
            count, floor = _TOPIC.unpack_from(encoded)
            if count > keep:
                excess = min(count - keep, limit - dropped)
                dropped += self._drop(self._oldest_of(encoded[_TOPIC.size :], floor, never_after, excess))
            if dropped >= limit:
                break
        if stopped != begin:
            self.txn.put(_PRUNED, stopped, db=self.tables.about)
        return dropped

    def _topics_behind(self, begin: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Topics with their counts, from one on and round to it."""
        behind = list(islice(items_within(self.txn.cursor(self.tables.topics), b"", begin), limit))
        around = islice(items_within(self.txn.cursor(self.tables.topics), b""), limit - len(behind))
        return behind + [(start, encoded) for start, encoded in around if start <= begin]

    def _oldest_of(self, topic: bytes, floor: int, never_after: int, limit: int) -> list[Found]:
        log = islice(self._found(floor), STRETCH)
        return list(islice((found for found in log if found[1] == topic and found[2] < never_after), limit))

    def _drop(self, events: Sequence[Found]) -> int:
        counts, floors = Counter(topic for _, topic, _ in events if topic), dict[bytes, int]()
        for n, topic, at in events:
            floors[topic] = n
            # The newest number is the counter, so it stays when its event goes.
            if n == self.latest():
                self.txn.put(NUMBER.pack(n), _HEAD.pack(at, 0, 0), db=self.tables.events)
            else:
                self.txn.delete(NUMBER.pack(n), db=self.tables.events)
        for topic, fewer in counts.items():
            start = scope(topic.decode())
            count, floor = self._counts(start)
            self.txn.put(start, _TOPIC.pack(max(count - fewer, 0), max(floor, floors[topic])) + topic, db=self.tables.topics)
        return counts.total()

    def _forget_answers(self, before: int, limit: int) -> int:
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


def _events(topic: str, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[Event]:
    """Those of the topic."""
    wanted = topic.encode()
    for number, encoded in rows:
        at, topic_size, name_size = _HEAD.unpack_from(encoded)
        name_at = _HEAD.size + topic_size
        if encoded[_HEAD.size : name_at] == wanted:
            data_at = name_at + name_size
            yield Event(NUMBER.unpack(number)[0], topic, encoded[name_at:data_at].decode(), Raw(encoded[data_at:]), at)


def moment_of_event(encoded: bytes) -> int:
    """When the event was written."""
    return int(_HEAD.unpack_from(encoded)[0])
