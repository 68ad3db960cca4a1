"""Messages as they are kept: a row that every change rewrites, and apart from it a large value and the history."""

from collections.abc import Callable

from msgspec import Raw, Struct, msgpack

from holdfast.records import NEVER, NO_VALUE, Ending, Message, ReturnTo, State
from holdfast.stores.lmdb.layout import line_key, moment_key, moment_start, scope, text_key
from holdfast.stores.lmdb.tables import Handle, Tables

LARGE_BYTES = 1_024
"""Values over this lie apart: LMDB gives a row of half a page or more pages of its own."""

LIVING, BUFFERED = b"l", b"b"


class Row(Struct, frozen=True, gc=False, array_like=True):
    """A message but for its history."""

    queue: str
    id: str
    n: int
    key: str | None
    priority: int
    position: int
    state: State
    attempts: int
    failures: int
    max_attempts: int | None
    dead_letter: str | None
    start_by: int | None
    created_at: int
    holder: str
    token: int
    since: int
    until: int
    expired_to: ReturnTo
    dead_at: int | None
    endings: int
    metadata: bytes | None
    value: bytes | None
    """None where it lies apart."""

    @property
    def place(self) -> bytes:
        """Where the row is kept."""
        return text_key(scope(self.queue), self.id)

    @property
    def start_alarm(self) -> int:
        """When it will be too late to start it."""
        return NEVER if self.start_by is None or self.attempts else self.start_by


class History(Struct, frozen=True, gc=False, array_like=True):
    """How the claims on a message ended."""

    last_error: str | None
    endings: tuple[Ending, ...]


NO_HISTORY = History(None, ())

encode: Callable[[object], bytes] = msgpack.Encoder().encode
decode_row: Callable[[bytes], Row] = msgpack.Decoder(Row).decode
decode_history: Callable[[bytes], History] = msgpack.Decoder(History).decode


def row_of(message: Message, n: int, value: bytes | None) -> Row:
    """The row of a message, with the value to be kept in it."""
    m = message
    return Row(
        m.queue,
        m.id,
        n,
        m.key,
        m.priority,
        m.position,
        m.state,
        m.attempts,
        m.failures,
        m.max_attempts,
        m.dead_letter,
        m.start_by,
        m.created_at,
        m.holder,
        m.token,
        m.since,
        m.until,
        m.expired_to,
        m.dead_at,
        m.endings,
        None if m.metadata is None else bytes(m.metadata),
        value,
    )


def message_of(row: Row, history: History, value: Raw = NO_VALUE) -> Message:
    """The message of a row."""
    return Message(
        row.queue,
        row.id,
        value,
        row.n,
        row.key,
        row.priority,
        row.position,
        row.state,
        row.attempts,
        row.failures,
        row.max_attempts,
        row.dead_letter,
        row.start_by,
        row.created_at,
        row.holder,
        row.token,
        row.since,
        row.until,
        row.expired_to,
        row.dead_at,
        history.last_error,
        row.endings,
        history.endings,
        None if row.metadata is None else Raw(row.metadata),
    )


def is_large(value: Raw) -> bool:
    """Whether the value lies apart."""
    return len(memoryview(value)) > LARGE_BYTES


def standing(tables: Tables, row: Row) -> list[tuple[Handle, bytes, bytes]]:
    """In which orders a message stands: table, key and what is kept there."""
    queue, id_ = scope(row.queue), row.id.encode()
    if row.state == "ready":
        alarm = row.start_alarm
        line = (tables.ready, line_key(queue, row.priority, row.position, row.n), moment_start(alarm) + id_)
        return [line] if alarm == NEVER else [line, (tables.starts, moment_key(queue, alarm, row.n), id_)]
    if row.state == "leased":
        return [(tables.leased, moment_key(queue, row.until, row.n), id_)]
    if row.state == "dead":
        return [(tables.dead, moment_key(queue, row.dead_at or 0, row.n), id_)]
    return []


def key_place(row: Row) -> bytes | None:
    """Where its key points to it, if it has one and lives."""
    if row.key is None or row.state == "dead":
        return None
    return text_key(scope(row.queue) + (BUFFERED if row.state == "buffered" else LIVING), row.key)
