"""The numbers of events and messages: one counter for all, which leaps to the clock when the environment was opened."""

from struct import Struct as Form

from holdfast.stores.lmdb.layout import NUMBER
from holdfast.stores.lmdb.step import Step

BATCH = 2**20
"""How many messages one event can add."""

LARGE = 2**40
"""Numbers of events from here on, times a batch, come near to the end of 64 bits."""

GAPS = 10_000
"""So many gaps between numbers are known; readers of events before the oldest of them start again."""

FLOOR, ORIGIN = b"floor", b"origin"
"""In `about`: up to which number events count as pruned whatever their topic; a number of an event, and that of the first message it can
add."""

_ORIGIN = Form(">QQ")


class Numbers(Step):
    """The counter of a transaction: the newest event's number, and what follows from it."""

    leaps: bool = False
    """Whether the next event is numbered by the clock, above all that was given out and lost when a backup was restored."""

    _latest: int | None = None

    def latest(self) -> int:
        if self._latest is None:
            cursor = self.txn.cursor(self.tables.events)
            self._latest = NUMBER.unpack(cursor.key())[0] if cursor.last() else 0
        return self._latest

    def _next_number(self) -> int:
        if self.leaps:
            self._leap()
        return self.latest() + 1

    def _leap(self) -> None:
        self.leaps = False
        latest = self.latest()
        if self.now <= latest + 1:
            return
        # A message's number is that of an event and a little, so its count must not leap along.
        self.begin_count(self.now, self.first_n(latest + 1))
        self._note_gap(self.now, latest)
        self._latest = self.now - 1

    def _note_gap(self, number: int, latest: int) -> None:
        """Remember that the numbers between were never given out here."""
        self.txn.put(NUMBER.pack(number), NUMBER.pack(latest), db=self.tables.gaps)
        if self.txn.stat(self.tables.gaps)["entries"] > GAPS:
            cursor = self.txn.cursor(self.tables.gaps)
            cursor.first()
            self._raise_floor(NUMBER.unpack(cursor.key())[0])
            cursor.delete()

    def was_skipped(self, number: int) -> bool:
        cursor = self.txn.cursor(self.tables.gaps)
        return bool(cursor.set_range(NUMBER.pack(number + 1))) and bool(NUMBER.unpack(cursor.value())[0] < number)

    def _floor(self) -> int:
        return int(NUMBER.unpack(self.txn.get(FLOOR, NUMBER.pack(0), db=self.tables.about))[0])

    def _raise_floor(self, number: int) -> None:
        """Let every event up to a number count as pruned."""
        self.txn.put(FLOOR, NUMBER.pack(max(number, self._floor())), db=self.tables.about)

    def first_n(self, number: int) -> int:
        """The number of the first message that is added with an event of this number."""
        if number < LARGE:
            return number * BATCH
        since, first = _ORIGIN.unpack(self.txn.get(ORIGIN, _ORIGIN.pack(0, 0), db=self.tables.about))
        return int(first + (number - since) * BATCH)

    def begin_count(self, number: int, n: int) -> None:
        """Let messages added with events from this number on have numbers from `n` on."""
        self.txn.put(ORIGIN, _ORIGIN.pack(number, n), db=self.tables.about)
