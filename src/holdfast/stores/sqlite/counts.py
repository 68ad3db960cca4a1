"""How many messages of a queue are in each state: kept by every commit, and read without walking the queue.

The commonest commands say in their event what they change, which costs no statement; now and then that is added to the counts. All others
add it up, and their commit updates the counts.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from sqlite3 import Cursor as SqlCursor

from holdfast.commands.stats import HELD_SEEN, Tally, size_of_part
from holdfast.records import Message, State
from holdfast.stores.sqlite.statements import SQL

STATES: tuple[State, ...] = ("ready", "leased", "buffered", "dead", "done")
"""As the columns of holdfast_counts."""
PLACES = {state: place for place, state in enumerate(STATES)}
READY, LEASED = PLACES["ready"], PLACES["leased"]

ONE_READY, ONE_LEASED = 1, 2**32
"""What an event says for one message more in that state; sums of it are taken apart again."""

FOLDED = "states"
"""In holdfast_meta: the number of the event up to which the counts know all."""

TOP = 2**31
"""Above every priority."""


class Counts:
    """The part of a transaction that counts."""

    sql: SqlCursor
    now: int
    shifts: dict[str, list[int]]
    """By queue, how many messages of each state this transaction has brought."""

    def shift(self, queue: str, place: int, count: int) -> None:
        """Count so many more in a state."""
        shifts = self.shifts.get(queue)
        if shifts is None:
            shifts = self.shifts[queue] = [0] * len(STATES)
        shifts[place] += count

    def save_counts(self) -> None:
        """Write down what the transaction has changed; queues that are not counted stay so."""
        for queue, shifts in self.shifts.items():
            if any(shifts):
                self.sql.execute(SQL["add_counts"], (*shifts, queue))
        self.shifts = {}

    def _entering(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.shift(message.queue, PLACES[message.state], 1)

    def _leaving(self, numbers: str) -> None:
        """Count the rows of these numbers out, in whatever state they are."""
        for queue, state, count in self.sql.execute(SQL["states_of"], (numbers,)).fetchall():
            self.shift(queue, PLACES[state], -count)

    def _emptied(self, queue: str) -> None:
        self.shifts.pop(queue, None)
        fold(self.sql)
        self.sql.execute(SQL["no_counts"], (queue,))

    def tally(self, queue: str) -> Tally:
        # The step itself may have changed what it counts.
        self.save_counts()
        row = self.sql.execute(SQL["counts"], (queue,)).fetchone()
        if row is None:
            return self._walked(queue)
        ready, leased, buffered, dead, done, unfolded = row
        ready, leased = ready + ready_in(unfolded), leased + leased_in(unfolded)
        delayed, position = self._line_sizes(queue, ready) if ready else (0, None)
        ended = (
            size_of_part(leased, partial(self._number, "ended_count", queue), partial(self._number, "held_count", queue)) if leased else 0
        )
        held = self.sql.execute(SQL["held_first"], (queue, self.now, HELD_SEEN)).fetchall() if leased > ended else []
        sinces = [since for _, since in held]
        (dead_at,) = self.sql.execute(SQL["first_dead"], (queue,)).fetchone() if dead else (None,)
        return Tally(
            ready=ready,
            delayed=delayed,
            first_position=position,
            buffered=buffered,
            leased=leased - ended,
            ended=ended,
            first_since=min(sinces, default=None),
            mean_since=sum(sinces) / len(sinces) if sinces else None,
            dead=dead,
            first_dead_at=dead_at,
            holders=dict(Counter(holder for holder, _ in held)),
            done=done,
        )

    def _line_sizes(self, queue: str, ready: int) -> tuple[int, int | None]:
        """How many ready messages are not due, and the first position."""
        priorities, positions = self._priorities(queue), list[int]()
        for priority in priorities:
            positions += [row[0] for row in self.sql.execute(SQL["first_position"], (queue, priority))]
        delayed = size_of_part(
            ready, partial(self._in_lines, "delayed_count", queue, priorities), partial(self._in_lines, "due_count", queue, priorities)
        )
        return delayed, min(positions, default=None)

    def _in_lines(self, what: str, queue: str, priorities: Sequence[int], most: int) -> int:
        """How many of them a statement finds in the lines of these priorities, up to a bound."""
        found = 0
        for priority in priorities:
            found += self.sql.execute(SQL[what], (queue, priority, self.now, most - found)).fetchone()[0]
            if found >= most:
                break
        return found

    def _number(self, what: str, queue: str, most: int) -> int:
        return int(self.sql.execute(SQL[what], (queue, self.now, most)).fetchone()[0])

    def _priorities(self, queue: str) -> list[int]:
        """Those of ready messages, the highest first."""
        found = list[int]()
        row = self.sql.execute(SQL["next_priority"], (queue, TOP)).fetchone()
        while row is not None:
            found.append(row[0])
            row = self.sql.execute(SQL["next_priority"], (queue, row[0])).fetchone()
        return found

    def _walked(self, queue: str) -> Tally:
        asked = {"queue": queue, "now": self.now}
        ready, delayed, position = self.sql.execute(SQL["tally_ready"], asked).fetchone()
        (buffered,) = self.sql.execute(SQL["tally_buffered"], asked).fetchone()
        leased, ended, since, mean = self.sql.execute(SQL["tally_leased"], asked).fetchone()
        dead, dead_at = self.sql.execute(SQL["tally_dead"], asked).fetchone()
        holders = dict(self.sql.execute(SQL["tally_holders"], asked).fetchall())
        (done,) = self.sql.execute(SQL["tally_done"], asked).fetchone()
        return Tally(ready, delayed, position, buffered, leased, ended, since, mean, dead, dead_at, holders, done)


def leased_in(counted: int) -> int:
    """How many messages more are leased after events that say so much."""
    return (counted + ONE_LEASED // 2) // ONE_LEASED


def ready_in(counted: int) -> int:
    """The same of ready ones."""
    return counted - leased_in(counted) * ONE_LEASED


def fold(sql: SqlCursor) -> None:
    """Add to the counts what events say that are not in them yet."""
    newest, noted = sql.execute(SQL["latest"]).fetchone(), sql.execute(SQL["meta"], (FOLDED,)).fetchone()
    latest, folded = newest[0] if newest else 0, int(noted[0]) if noted else 0
    if folded < latest:
        for topic, counted in sql.execute(SQL["unfolded"], (folded, latest)).fetchall():
            sql.execute(SQL["add_counts"], (ready_in(counted), leased_in(counted), 0, 0, 0, topic.removeprefix("queue:")))
        sql.execute(SQL["save_meta"], (FOLDED, str(latest)))


def count_again(sql: SqlCursor) -> None:
    """Count the queues that are not counted, inside a transaction: after an upgrade, or after an older release wrote to the file."""
    if sql.execute(SQL["uncounted"]).fetchone() is not None:
        fold(sql)
        sql.execute(SQL["recount"])
