"""Messages as they are kept: a row that every change rewrites, and apart from it a large value, the history and extra fields."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Raw, Struct, msgpack

from holdfast.records import NEVER, NO_VALUE, Ending, Message, ReturnTo, State
from holdfast.stores.files.extra import EXTRA
from holdfast.stores.lmdb.layout import line_key, moment_key, moment_start, scope, text_key
from holdfast.stores.lmdb.tables import Handle, Tables

LARGE_BYTES = 1_024
"""Values over this lie apart: LMDB gives a row of half a page or more pages of its own."""

LIVING, BUFFERED = b"l", b"b"


class Row(Struct, frozen=True, gc=False, array_like=True):
    """A message but for its history and its extra fields: what an earlier release rewrites, it must know.

    In the order of the fields of `Message`, with the value at the end.
    """

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


_from_key: Callable[[Message], tuple[Any, ...]] = attrgetter(*Row.__struct_fields__[3:-2])
_from_number: Callable[[Row], tuple[Any, ...]] = attrgetter(*Row.__struct_fields__[2:-3])


def row_of(message: Message, n: int, value: bytes | None) -> Row:
    """The row of a message, with the value to be kept in it."""
    last: tuple[Any, ...] = (None if message.metadata is None else bytes(message.metadata), value)
    return Row(message.queue, message.id, n, *_from_key(message), *last)


def message_of(row: Row, history: History, extra: bytes | None, value: Raw = NO_VALUE) -> Message:
    """The message of a row."""
    if history is NO_HISTORY and row.metadata is None and extra is None:
        return Message(row.queue, row.id, value, *_from_number(row))
    rest: tuple[Any, ...] = (history.last_error, row.endings, history.endings, None if row.metadata is None else Raw(row.metadata))
    return Message(row.queue, row.id, value, *_from_number(row), *rest, *EXTRA.read(extra))


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
