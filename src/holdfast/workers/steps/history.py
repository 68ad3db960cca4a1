"""The history of a durable job: what was recorded, what a run has asked for of it, and the commands that record more."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec import encode_key
from holdfast.commands import Change, Extend, Length, Together, Write
from holdfast.errors import JobTooLong, StepsChanged
from holdfast.records import HISTORY, Entry, Message, seconds_in
from holdfast.wording import counted
from holdfast.workers.names import progress_of
from holdfast.workers.steps.access import StepSetting
from holdfast.workers.steps.rows import CANCELS, Head, Key, Row, decode_head, decode_row, head_key, job_prefix, row_key, steps_of, timer_key
from holdfast.workers.steps.signals import Inbox
from holdfast.workers.steps.waits import Wait

MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 64 * 2**20
"""How many steps one job may record, and how much in all."""

WARN_AT: Final = 10
"""A warning is logged at this part of either limit."""

DELETE_MOST: Final = 9_000
"""How many rows the last step of a job deletes; the janitor finds the rest."""

NULL: Final = Raw(b"null")

_log = logging.getLogger("holdfast.worker")


class History:
    """What is recorded of one job, as one run of it sees that."""

    head: Head

    def __init__(self, message: Message, setting: StepSetting, started: float) -> None:
        self.message = message
        self.setting = setting
        self.inbox: Inbox = Inbox(message.id)
        self.rows: dict[Key, Row] = {}
        self.unasked: set[Key] = set()
        self.head = Head(message.token, setting.version)
        self.is_cancel_requested: bool = False
        self.has_progress = False
        """Whether its own steps have said how far it is."""
        self._started = started
        self._has_head = False
        self._pending: dict[Key, Any] = {}
        self._timers: dict[Key, float] = {}
        self._counts: dict[tuple[str, str, str], int] = {}
        self._size = 0
        self._has_warned = False
        self.on_asked: Callable[[], object] = lambda: None
        """Called when every recorded step was asked for."""

    @property
    def is_new(self) -> bool:
        """Whether nothing can be recorded of it yet: it was never handed out before."""
        return self.message.attempts <= 1 and b'"dead_letter"' not in bytes(self.message.metadata or b"")

    @property
    def is_durable(self) -> bool:
        """Whether something is recorded of it."""
        return self._has_head or bool(self._pending)

    # What was recorded before this run.

    def take_head(self, entry: Entry | None) -> None:
        """Go on with a stored head, unless it is that of an earlier job under the same id."""
        if entry is None:
            return
        head, message = decode_head(entry.value), self.message
        is_complete = message.endings <= HISTORY and b'"dead_letter"' not in bytes(message.metadata or b"")
        first = message.history[0].token if message.history else message.token
        if is_complete and head.run < first:
            return
        self.head, self._has_head = head, True

    def take_rows(self, entries: Iterable[Entry]) -> None:
        """Take rows and timers that belong to the head."""
        for entry in entries:
            parts: list[Any] = json.decode(entry.key)  # Texts and numbers alone: nothing in it is tagged.
            if parts[1] != self.head.run or not self._has_head:
                continue
            key: Key = tuple(parts[2:6])
            if len(parts) > 6:  # noqa: PLR2004 - behind the parts of a key stands the mark of a timer
                left_s = seconds_in((entry.expires_at or 0) - self.message.since)
                self._timers[key] = self._started + left_s
                continue
            self.rows[key] = decode_row(entry.value)
            self._size += len(entry.value)
            self.unasked.add(key)

    def take_request(self, entries: Sequence[Entry]) -> None:
        """Take a request to cancel the job, if it is for this very one and was not delivered."""
        if entries and not self.head.is_cancelled:
            self.is_cancel_requested = json.decode(entries[0].value) == self.message.created_at

    def dropped_by_redrive(self) -> list[Key]:
        """The steps that failed before a burial which a redrive has undone: they are tried again."""
        buried = [ending.token for ending in self.message.history if ending.how == "buried"]
        if not buried or not self._has_head or buried[-1] <= self.head.redriven:
            return []
        self.head = replace(self.head, redriven=buried[-1])
        return [key for key, row in self.rows.items() if row.state == "failed" or (row.count and row.result is not None)]

    def drop(self, keys: Sequence[Key]) -> Together:
        """What forgets these rows, and records that it was done."""
        for key in keys:
            self._forget(key)
        deletes = [Change(self.row_key(key), "delete") for key in keys]
        return self.guarded([Write(self.dict, [*deletes, self._head_change()])])

    # What this run asks for.

    def identify(self, branch: str, name: str, hashed: str) -> Key:
        """The key of the next step of this name and these arguments in the branch."""
        kind = (branch, name, hashed)
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        return (*kind, number)

    def ask(self, key: Key) -> Row | None:
        """What is recorded under a key."""
        if key in self.unasked:
            self.unasked.discard(key)
            self.on_asked()
        return self.rows.get(key)

    def due_at(self, key: Key) -> float | None:
        """When the timer of a row ends, by the clock of the worker; None if it has ended."""
        return self._timers.get(key)

    def pending(self, is_over: Callable[[Any], bool]) -> list[Key]:
        """The rows that were recorded in transactions of the caller's whose commit was not seen, by branches of which this holds."""
        return [key for key, branch in self._pending.items() if is_over(branch)]

    def committed(self, key: Key) -> None:
        """Note that the transaction in which a row was recorded is committed."""
        del self._pending[key]
        self._has_head = True

    def rolled_back(self, key: Key) -> None:
        """Forget a row whose transaction is not committed: its step is to be asked for again before a new one begins."""
        del self._pending[key]
        self._forget(key)
        self.unasked.add(key)
        branch, name, hashed, number = key
        self._counts[branch, name, hashed] = min(number, self._counts[branch, name, hashed])

    def check_room(self) -> None:
        """Raise `JobTooLong` if no more may be recorded."""
        rows, size = len(self.rows), self._size
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            raise JobTooLong(
                f"job {self.message.id} of queue {self.message.queue!r} has recorded {counted(rows, 'step')} and {size:,} bytes, as many "
                "as a job may: end it with job.again(…), which begins anew with other arguments, or give parts of it to job.call"
            )
        if not self._has_warned and (rows >= MOST_ROWS // WARN_AT or size >= MOST_BYTES // WARN_AT):
            self._has_warned = True
            _log.warning(
                "job %s of queue %r has recorded %s and %s bytes; at %s steps or %s bytes it ends with JobTooLong: see job.again",
                *(self.message.id, self.message.queue, counted(rows, "step"), f"{size:,}", f"{MOST_ROWS:,}", f"{MOST_BYTES:,}"),
            )

    def changed(self, key: Key) -> StepsChanged:
        """That a step is to begin although others are recorded that were not asked for."""
        undone = sorted(key for key in self.unasked if key not in self.rows)
        if undone:
            lacking = ", ".join(shown_key(one) for one in undone[:5])
            return StepsChanged(
                f"job {self.message.id} of queue {self.message.queue!r} wants to begin {shown_key(key)}, but {lacking} was recorded in a "
                "transaction of yours (connection=) that is not committed: commit it first, give this step the same connection, or, after "
                "a rollback, ask for the steps of the transaction again"
            )
        unasked = ", ".join(shown_key(one) for one in sorted(self.unasked)[:5])
        more = len(self.unasked) - 5
        return StepsChanged(
            f"job {self.message.id} of queue {self.message.queue!r} wants to begin {shown_key(key)}, but its history has "
            f"{unasked}{f' and {more} more' if more > 0 else ''}, which this run has not asked for: the code has changed, or it decides by "
            "something that is not recorded. Guard new steps by job.version, bring the old steps back, and redrive the job"
        )

    # What this run records.

    @property
    def dict(self) -> str:
        """The dict of its rows."""
        return steps_of(self.message.queue)

    def row_key(self, key: Key) -> str:
        """Where a row of it is kept."""
        return row_key(self.message.id, self.head.run, key)

    def guarded(self, commands: Sequence[Any]) -> Together:
        """These commands, if the claim is still held: they count as progress, and extend it."""
        return Together([Extend([self.message.receipt], self.setting.lease_s, progress=True), *commands])

    def checkpoint(self, key: Key, row: Row, *, timer_s: float | None = None, also: Sequence[Any] = ()) -> Together:
        """What records a row; with `timer_s` its timer begins."""
        changes = [Change(self.row_key(key), value=row.raw)]
        timer = timer_key(self.message.id, self.head.run, key)
        if timer_s:
            changes.append(Change(timer, value=NULL, ttl_s=timer_s))
        elif key in self._timers:
            changes.append(Change(timer, "delete"))
        if not self._has_head:
            changes.append(self._head_change())
        return self.guarded([Write(self.dict, changes), *also])

    def recorded(self, key: Key, row: Row, *, timer_s: float | None = None) -> None:
        """Note that a row was recorded."""
        self._has_head = True
        self._note(key, row)
        self._timers.pop(key, None)
        if timer_s:
            self._timers[key] = self.setting.now() + timer_s

    def recorded_within(self, branch: Any, key: Key, row: Row) -> None:
        """Note that a branch recorded a row in a transaction of the caller's, which may be rolled back."""
        self._pending[key] = branch
        self._note(key, row)

    def _note(self, key: Key, row: Row) -> None:
        self.rows[key] = row
        self._size += len(row.raw)

    def begin_cancelling(self) -> None:
        """Deliver a request to cancel the job, once."""
        self.head = replace(self.head, is_cancelled=True)
        self.is_cancel_requested = False

    def cancelled(self, key: Key, *, also: Sequence[Any]) -> Together:
        """What records that a request to cancel the job was delivered where it stands."""
        changes = [Change(self.row_key(key), value=Row("cancelled", at=time.time()).raw), self._head_change()]
        if key in self._timers:
            changes.append(Change(timer_key(self.message.id, self.head.run, key), "delete"))
        forget = Write(CANCELS, [Change(self.cancel_key, "delete")])
        return self.guarded([Write(self.dict, changes), forget, *also])

    @property
    def cancel_key(self) -> str:
        """Where a request to cancel it is kept."""
        return encode_key((self.message.queue, self.message.id))

    def suspension(self, waits: Sequence[Wait]) -> list[Any]:
        """What goes with the end of a run whose job sleeps; refused if what it waits for came meanwhile."""
        dues = [wait.due for wait in waits if wait.due is not None]
        looks = bool(dues) and min(waits, key=lambda wait: wait.due or float("inf")).looks
        self.head = replace(self.head, waits=tuple(wait.what for wait in waits[:100]), looks=looks)
        commands: list[Any] = [Write(self.dict, [self._head_change()])]
        names = {name for wait in waits for name in wait.names}
        if names:
            commands.append(Write(self.inbox.dict(self.message.queue), self.inbox.unchanged(sorted(names))))
        if not self.head.is_cancelled:
            commands.append(Write(CANCELS, [Change(self.cancel_key, "compare", expect="absent")]))
        return commands + [Length(wait.marks) for wait in waits if wait.marks is not None]

    def beginning(self, args: Raw) -> list[Any]:
        """What goes with the end of a run whose job begins again with other arguments."""
        rows = [Change(key, "delete") for key in self._stored_keys()[:DELETE_MOST]]
        self.head = Head(self.message.token, self.setting.version, args)
        return [Write(self.dict, [*rows, self._head_change()])]

    def deletion(self) -> list[Any]:
        """What removes all of it, but for signals that no one has seen."""
        keys = [head_key(self.message.id), *self._stored_keys()][:DELETE_MOST]
        signals = self.inbox.keys[: DELETE_MOST - len(keys)]
        commands: list[Any] = [Write(self.dict, [Change(key, "delete") for key in keys])]
        if self.has_progress:
            commands.append(Write(progress_of(self.message.queue), [Change(encode_key(self.message.id), "delete")]))
        if signals:
            commands.append(Write(self.inbox.dict(self.message.queue), [Change(key, "delete") for key in signals]))
        return commands

    @property
    def prefix(self) -> str:
        """What the keys of its rows begin with."""
        return job_prefix(self.message.id)

    def _stored_keys(self) -> list[str]:
        timers = [timer_key(self.message.id, self.head.run, key) for key in self._timers]
        return [*(self.row_key(key) for key in self.rows), *timers]

    def _head_change(self) -> Change:
        return Change(head_key(self.message.id), value=self.head.raw)

    def _forget(self, key: Key) -> None:
        self.rows.pop(key, None)
        self.unasked.discard(key)


def shown_key(key: Key) -> str:
    """A step as people know it."""
    branch, name, _, number = key
    return f"{name.removeprefix('~')!r}{f' (number {number + 1})' if number else ''}{f' of branch {branch!r}' if branch else ''}"
