"""The events of a SQLite file and the answers to repeated commands, as a transaction sees them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from sqlite3 import Cursor as SqlCursor

from msgspec import Raw, json

from holdfast.commands.allowance import Allowance
from holdfast.commands.hints import ALL, Hints
from holdfast.commands.topics import watch_topic
from holdfast.commands.transaction import Draft, Stretch
from holdfast.records import Event
from holdfast.stores.sqlite.queues import as_json
from holdfast.stores.sqlite.statements import SQL

STRETCH = 20_000
"""How many events one reading of the log walks at most."""

GAPS = 10_000
"""So many gaps between numbers are known; readers of events before the oldest of them start again."""

COUNTED, PRUNED, FLOOR = "counted", "pruned", "floor"
"""Names in holdfast_meta: of the last event in the counts of holdfast_topics, of the topic at which the last pruning stopped, and of the
number up to which events count as pruned whatever their topic."""


APPEND = SQL["append"]

_encode_into = json.Encoder().encode_into


def _text(facts: Mapping[str, object]) -> bytearray:
    """An event's facts as text, as `bindable` wants it."""
    text = bytearray()
    _encode_into(facts, text)
    return text


class Log:
    """The event half of a transaction."""

    sql: SqlCursor
    now: int
    allowance: Allowance
    hints: Hints
    appended: int
    opener: str | None
    """Who lets the numbers leap to the clock with the next event; None once they have."""

    def append(self, drafts: Sequence[Draft]) -> int:
        first, rest = drafts[0], drafts[1:]
        number = self.tell(first.topic, first.event, first.facts)
        if rest:
            self.appended += len(rest)
            self.hints.update((watch_topic(draft.topic), ALL) for draft in rest)
            self.sql.executemany(APPEND, [(draft.topic, draft.event, _text(draft.facts), self.now, 0) for draft in rest])
        return number

    def tell(self, topic: str, event: str, facts: Mapping[str, object], counted: int = 0) -> int:
        """Append one event; return its number. What it changes of the counts, it may say itself: see `counts`."""
        self.appended += 1
        self.hints[watch_topic(topic)] = ALL
        if self.opener is not None and (number := self._leap(self.opener)) is not None:
            self.sql.execute(SQL["append_at"], (number, topic, event, _text(facts), self.now, counted))
            return number
        self.sql.execute(APPEND, (topic, event, _text(facts), self.now, counted))
        return self.sql.lastrowid or 0

    def _leap(self, opener: str) -> int | None:
        """The number to go on with, where this opener's numbers have yet to leap."""
        self.opener = None
        latest = self.latest()
        if self.now <= latest + 1 or self.sql.execute(SQL["has_leapt"], (opener,)).fetchone():
            return None
        self._note_gap(self.now, latest, opener)
        return self.now

    def _note_gap(self, number: int, latest: int, opener: str) -> None:
        """Remember that the numbers between were never given out here."""
        self.sql.execute(SQL["add_gap"], (number, latest, opener))
        oldest = self.sql.execute(SQL["gap_too_many"], (GAPS,)).fetchone()
        if oldest is not None:
            self.sql.execute(SQL["forget_gaps"], oldest)
            self._raise_floor(oldest[0])

    def _raise_floor(self, number: int) -> None:
        """Let every event up to a number count as pruned."""
        self.sql.execute(SQL["save_meta"], (FLOOR, str(max(number, int(self._meta(FLOOR) or 0)))))

    def latest(self) -> int:
        row = self.sql.execute(SQL["latest"]).fetchone()
        return 0 if row is None else row[0]

    def was_skipped(self, number: int) -> bool:
        row = self.sql.execute(SQL["gap_above"], (number,)).fetchone()
        return row is not None and bool(row[0] < number)

    def changes(self, topic: str, after: int, limit: int) -> Stretch:
        was_skipped, (floor,) = self.was_skipped(after), self.sql.execute(SQL["floor"], (topic,)).fetchone()
        after = max(after, floor)
        oldest = self.sql.execute(SQL["oldest"]).fetchone()
        latest = self.latest()
        # Many watch what is quiet, and the log may be long: what is known to be of other topics is not walked.
        quiet = self.sql.execute(SQL["quiet_until"], (topic, after)).fetchone()
        after = max(after, oldest[0] - 1 if oldest else 0, quiet[0] if quiet else 0)
        end = None if latest - after <= STRETCH else self.sql.execute(SQL["stretch_end"], (after, STRETCH - 1)).fetchone()
        upto = latest if end is None else end[0]
        asked = {"topic": topic, "after": after, "upto": upto, "limit": limit}
        rows = self.sql.execute(SQL["changes"], asked)
        events = self.allowance.fitting(Event(n, name, event, Raw(data), at) for n, name, event, data, at in rows)
        is_full = len(events) == limit or self.allowance.is_cut
        return Stretch(events, events[-1].index if is_full else max(upto, after), floor, was_skipped)

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        answers = self.sql.execute(SQL["forget_answers"], (never_after, limit)).rowcount
        return answers + self._prune_events(keep, older_than, never_after, limit)

    def _prune_events(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        latest, oldest = self.latest(), self.sql.execute(SQL["oldest"]).fetchone()
        self._count_topics(latest)
        if oldest is None or oldest[1] >= never_after:
            return 0
        pruned = self._drop_old(min(older_than, never_after), latest, limit) if oldest[1] < older_than else 0
        if self._span(oldest[0], latest) >= keep:
            pruned += self._prune_topics(keep, self._first_from(never_after, oldest[0], latest), limit - pruned)
        return pruned

    def _span(self, first: int, last: int) -> int:
        """How many numbers were given out from one to another."""
        skipped = [self.sql.execute(SQL["skipped_up_to"], (number,)).fetchone() or (0,) for number in (first, last)]
        return last - first - int(skipped[1][0] - skipped[0][0])

    def _drop_old(self, before: int, latest: int, limit: int) -> int:
        rows = self.sql.execute(SQL["old_events"], (latest, limit)).fetchall()
        return self._drop([(n, topic) for n, topic, at in rows if at < before])

    def _prune_topics(self, keep: int, young: int, limit: int) -> int:
        """Drop what topics have beyond `keep`, of the events before the number `young`."""
        pruned = 0
        for topic, excess, floor in self._topics_over(keep, limit):
            asked = {"topic": topic, "floor": floor, "young": young, "limit": min(excess, limit - pruned)}
            pruned += self._drop([(row[0], topic) for row in self.sql.execute(SQL["old_events_of"], asked).fetchall()])
        return pruned

    def _topics_over(self, keep: int, limit: int) -> list[tuple[str, int, int]]:
        """Of the next so many topics, and round to the first, those with more than `keep` events, by how many, and their floors."""
        begin = self._meta(PRUNED) or ""
        behind = self._last_topic(begin, limit)
        around = min(self._last_topic("", limit), begin)
        stretches = [(begin, behind), ("", around)]
        self.sql.execute(SQL["save_meta"], (PRUNED, behind if behind > begin else around))
        asked = [{"keep": keep, "begin": first, "end": last} for first, last in stretches]
        return [row for one in asked for row in self.sql.execute(SQL["topics_over"], one).fetchall()]

    def _last_topic(self, begin: str, limit: int) -> str:
        row = self.sql.execute(SQL["last_topic"], (begin, limit)).fetchone()
        return begin if row is None else row[0]

    def _meta(self, name: str) -> str | None:
        row = self.sql.execute(SQL["meta"], (name,)).fetchone()
        return None if row is None else row[0]

    def _first_from(self, moment: int, low: int, high: int) -> int:
        """The number at which the events of this moment and later begin, `high` at most; they lie in the order of their moments."""
        top = high
        while low < high:
            middle = (low + high) // 2
            n, at = self.sql.execute(SQL["event_from"], (middle,)).fetchone()
            low, high = (n + 1, high) if at < moment else (low, middle)
        return min(low, top)

    def _count_topics(self, latest: int) -> None:
        counted = int(self._meta(COUNTED) or 0)
        if counted < latest:
            self.sql.executemany(SQL["add_topic_count"], self.sql.execute(SQL["count_topics"], (counted, latest)).fetchall())
            self.sql.execute(SQL["save_meta"], (COUNTED, str(latest)))

    def _drop(self, events: Sequence[tuple[int, str]]) -> int:
        if events:
            highest, counts = dict(sorted((topic, n) for n, topic in events)), Counter(topic for _, topic in events)
            self.sql.executemany(SQL["drop_events"], [(count, highest[topic], topic) for topic, count in counts.items()])
            self.sql.execute(SQL["delete_events"], (as_json([n for n, _ in events]),))
        return len(events)

    def recall(self, command_id: str) -> bytes | None:
        row = self.sql.execute(SQL["recall"], (command_id,)).fetchone()
        return None if row is None else row[0]

    def record(self, command_id: str, note: bytes) -> None:
        self.sql.execute(SQL["record"], (command_id, note, self.now))

    def recalled(self, command_ids: Sequence[str]) -> set[str]:
        """Those of the ids whose commands were executed before."""
        return {row[0] for row in self.sql.execute(SQL["recalled"], (as_json(command_ids),))}

    def record_each(self, notes: Sequence[tuple[str, bytes]]) -> None:
        """Keep several answers."""
        self.sql.executemany(SQL["record"], [(command_id, note, self.now) for command_id, note in notes])
