"""The messages of a SQLite file, as a transaction sees them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec import Raw, json

from holdfast.commands.allowance import Allowance
from holdfast.commands.transaction import Cursor, Line
from holdfast.records import NEVER, Message, Receipt, ReturnTo, State
from holdfast.records.policies import Settings
from holdfast.stores.files.extra import EXTRA
from holdfast.stores.sqlite.counts import LEASED, READY, TOP, Counts
from holdfast.stores.sqlite.lanes import Lanes, read_settings
from holdfast.stores.sqlite.reading import apart
from holdfast.stores.sqlite.rows import is_large, new_row, write_message
from holdfast.stores.sqlite.statements import SQL

PRIORITY, HEAD_VALUE, IS_ODD, HAS_OVERDUE, POLICY, PAUSED, MAXSIZE = 3, 8, 9, 10, 11, 12, 13
"""Columns of `heads`."""

LANED = 10_000
"""Of so many queues it is remembered that they have lanes."""

FIRST: dict[State, Cursor] = {
    "ready": (-TOP - 1, 0, 0),
    "leased": (-NEVER, 0),
    "dead": (-NEVER, 0),
    "done": (-NEVER, 0),
    "buffered": ("", 0),
}
"""Before the first message of each state."""


class Messages(Lanes, Counts):
    """The queue half of a transaction."""

    laned: set[str]
    """Queues that had lanes when they were last looked at: of these the heads are not worth asking for."""
    heads_seen: list[tuple[Any, ...]] | None = None
    """What `head_rows` gave for the claim at hand, if it has been asked."""

    def settings(self, kind: str, name: str) -> Settings | None:
        row = self.sql.execute(SQL["settings"], (kind, name)).fetchone()
        return None if row is None else read_settings(row)

    def messages(self, queue: str, ids: Collection[str], *, values: bool = False) -> Iterable[Message]:
        if values:
            return self._with_values(apart(self.sql).execute(SQL["pick"], {"queue": queue, "ids": as_json(ids)}))
        one = len(ids) == 1
        rows = self.sql.execute(SQL["message"], (queue, *ids)) if one else self.sql.execute(SQL["messages"], (as_json(ids), queue))
        return [self._bare(row) for row in rows]

    def keyed(self, queue: str, keys: Collection[str]) -> list[Message]:
        return [self._bare(row) for row in self.sql.execute(SQL["keyed"], {"queue": queue, "keys": as_json(set(keys))})]

    def line(self, queue: str, limit: int, overdue_limit: int) -> Line:
        # A claim that was tried the fast way has asked before.
        rows, self.heads_seen = self.heads_seen, None
        if rows is None:
            rows = [] if queue in self.laned else self.head_rows(queue, limit)
        is_plain = rows and rows[0][POLICY] is None
        settings = Settings("queue", queue, bool(rows[0][PAUSED]), *rows[0][MAXSIZE:]) if is_plain else self.settings("queue", queue)
        if self._note_lanes(queue, settings):
            rows = self.head_rows(queue, limit)
        # A claim under the rules of a policy asks again, for a part of it.
        if settings is None or settings.paused or (settings.is_ruled and limit and overdue_limit):
            return Line(settings, [], [])
        if settings.policy is not None and settings.policy.has_lanes:
            return Line(settings, [], self._overdue(queue, overdue_limit), self._next_due_in_lanes(queue))
        overdue = []
        if not rows or rows[0][HAS_OVERDUE]:
            overdue = self._overdue(queue, overdue_limit)
        heads = Allowance().fitting(chain(self._heads(queue, rows), self._lower_heads(queue, limit, rows)))
        return Line(settings, heads, overdue, None if heads else self._next_due(queue))

    def _note_lanes(self, queue: str, settings: Settings | None) -> bool:
        """Remember whether the queue has lanes; whether it was wrongly taken for one that has."""
        was_laned = queue in self.laned
        if settings is not None and settings.policy is not None and settings.policy.has_lanes:
            if len(self.laned) >= LANED:
                self.laned.clear()
            self.laned.add(queue)
            return False
        self.laned.discard(queue)
        return was_laned

    def _overdue(self, queue: str, limit: int) -> list[Message]:
        return [self._bare(row) for row in self.sql.execute(SQL["overdue"], (queue, self.now, limit))]

    def _next_due_in_lanes(self, queue: str) -> int | None:
        """What is in line waits for its lane."""
        moments = [*self.sql.execute(SQL["next_alarm"], (queue, self.now)), *self.sql.execute(SQL["next_wake"], (queue,))]
        return min((row[0] for row in moments), default=None)

    def head_rows(self, queue: str, limit: int) -> list[tuple[Any, ...]]:
        """The first of the highest priority in use, bare of what most messages leave out, beside what else a claim must know."""
        return self.sql.execute(SQL["heads"], (queue, self.now, limit)).fetchall()

    def _heads(self, queue: str, rows: list[tuple[Any, ...]]) -> Iterable[Message]:
        if any(row[IS_ODD] for row in rows):
            return self.messages(queue, [row[1] for row in rows], values=True)
        return [
            Message(queue, message_id, Raw(value), n, key, priority, position, "ready", attempts, failures, created_at=created_at)
            for n, message_id, key, priority, position, attempts, failures, created_at, value, *_ in rows
        ]

    def _lower_heads(self, queue: str, limit: int, rows: list[tuple[Any, ...]]) -> Iterator[Message]:
        """Walk the priorities in use below that of the heads; below the highest, whose heads are not due, where there are none."""
        left = limit - len(rows)
        priority = rows[0][PRIORITY] if rows else self._next_priority(queue, TOP) if left else None
        while left and priority is not None and (priority := self._next_priority(queue, priority)) is not None:
            asked = {"queue": queue, "priority": priority, "now": self.now, "limit": left}
            for message in self._with_values(apart(self.sql).execute(SQL["heads_at"], asked)):
                left -= 1
                yield message

    def _next_priority(self, queue: str, below: int) -> int | None:
        row = self.sql.execute(SQL["next_priority"], (queue, below)).fetchone()
        return None if row is None else row[0]

    def head_position(self, queue: str, priority: int) -> int | None:
        row = self.sql.execute(SQL["head_position"], (queue, priority, self.now)).fetchone()
        return None if row is None else row[0]

    def _next_due(self, queue: str) -> int | None:
        moments = [row[0] for row in self.sql.execute(SQL["next_alarm"], (queue, self.now))]
        priority = self._next_priority(queue, TOP)
        while priority is not None:
            moments += [row[0] for row in self.sql.execute(SQL["next_position"], (queue, priority, self.now))]
            priority = self._next_priority(queue, priority)
        return min(moments, default=None)

    def browse(self, queue: str, state: State, after: Cursor | None, limit: int, *, values: bool = True) -> Iterator[Message]:
        asked: dict[str, Any] = {"queue": queue, "limit": limit, **dict(zip("abc", after or FIRST[state], strict=False))}
        if values:
            return self._with_values(apart(self.sql).execute(SQL[f"browse_{state}"], asked))
        return map(self._bare, apart(self.sql).execute(SQL[f"bare_browse_{state}"], asked))

    def add(self, messages: Sequence[Message]) -> None:
        self._entering(messages)
        if not any(is_large(message.value) for message in messages):
            self.sql.executemany(SQL["add"], [new_row(message) for message in messages])
            return
        for message in messages:
            self.sql.execute(SQL["add"], new_row(message))
            if is_large(message.value):
                self.sql.execute(SQL["add_value"], (self.sql.lastrowid, message.value))

    def lease(self, messages: Sequence[Message], holder: str, token: int, until: int, expired_to: ReturnTo) -> None:
        if messages:
            self.shift(messages[0].queue, READY, -len(messages))
            self.shift(messages[0].queue, LEASED, len(messages))
        self.lease_rows(messages, holder, token, until, expired_to)

    def lease_rows(self, messages: Sequence[Message], holder: str, token: int, until: int, expired_to: ReturnTo) -> None:
        """The same for a caller that counts it."""
        alarm = until if until < NEVER else None
        row = (alarm, holder, token, self.now, until, expired_to)
        if len(messages) == 1:
            (message,) = messages
            if message.tied:
                self.sql.execute(SQL["lease_tied"], (*row, message.tied, message.n))
            else:
                self.sql.execute(SQL["lease_one"], (*row, message.n))
        elif any(message.tied for message in messages):
            self.sql.executemany(SQL["lease_tied"], [(*row, message.tied, message.n) for message in messages])
        else:
            self.sql.execute(SQL["lease"], (*row, numbers(messages)))

    def extend(self, messages: Sequence[Message], until: int) -> None:
        self.sql.execute(SQL["extend"], (until if until < NEVER else None, until, numbers(messages)))

    def renew_claim(self, receipt: Receipt, until: int, *, progress: bool) -> bool:
        claim = (receipt.queue, receipt.id, receipt.token, self.now)
        alarm = until if until < NEVER else None
        return bool(self.sql.execute(SQL["extend_one"], (alarm, until, progress, *claim)).rowcount == 1)

    def remove(self, messages: Sequence[Message]) -> None:
        self._leaving(numbers(messages))
        if len(messages) == 1:
            self.sql.execute(SQL["remove_one"], (messages[0].n,))
        elif messages:
            self.sql.execute(SQL["remove"], (numbers(messages),))
        if self._apart and (apart := self._apart.intersection(message.n for message in messages)):
            self.sql.execute(SQL["drop_values"], (as_json(apart),))

    def _save_messages(self, messages: Sequence[Message]) -> None:
        self._leaving(numbers(messages))
        self._entering(messages)
        self.sql.executemany(SQL["restore"], [(*write_message(message), message.n) for message in messages])

    def revalue(self, messages: Sequence[Message]) -> None:
        for message in messages:
            is_apart = is_large(message.value)
            row = (message.metadata, EXTRA.write(message), None if is_apart else message.value, message.n)
            self.sql.execute(SQL["revalue"], row)
            if is_apart:
                self.sql.execute(SQL["add_value"], (message.n, message.value))
            else:
                self.sql.execute(SQL["drop_values"], (as_json([message.n]),))

    def _clear_queue(self, queue: str) -> int:
        self._emptied(queue)
        self.sql.execute(SQL["clear_values"], (queue,))
        return self.sql.execute(SQL["clear_messages"], (queue,)).rowcount


def numbers(messages: Iterable[Message]) -> str:
    """The rows of these messages, as one parameter."""
    return as_json([message.n for message in messages])


def as_json(things: Iterable[object]) -> str:
    """A set of parameters as one parameter."""
    return json.encode(list(things)).decode()
