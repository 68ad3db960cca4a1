"""Messages as they are kept: a row that every change rewrites, and apart from it a large value, the history and extra fields."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Raw, Struct, msgpack
from msgspec.structs import astuple

from holdfast.commands.plain import uses_only
from holdfast.records import NEVER, NO_VALUE, Ending, Message, ReturnTo, State
from holdfast.stores.files.extra import EXTRA, LINED
from holdfast.stores.lmdb.layout import line_key, moment_key, moment_start, scope, text_key
from holdfast.stores.lmdb.tables import Handle, Tables

LARGE_BYTES = 1_024
"""Values over this lie apart: LMDB gives a row of half a page or more pages of its own."""

LIVING, BUFFERED = b"l", b"b"


class Lined(Struct, frozen=True, gc=False, array_like=True):
    """The fields of a message that only queues with policies use."""

    lane: str | None = None
    level: int = 0
    rank: int | None = None
    tied: int = 0
    ended_at: int | None = None
    trace: str | None = None


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
    lined: Lined | None = None

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


_from_key: Callable[[Message], tuple[Any, ...]] = attrgetter(*Row.__struct_fields__[3:-3])
_from_number: Callable[[Row], tuple[Any, ...]] = attrgetter(*Row.__struct_fields__[2:-4])


_lined: Callable[[Message], tuple[Any, ...]] = attrgetter(*LINED)
_is_unlined = uses_only(Message, *(name for name in Message.__struct_fields__ if name not in LINED))


def row_of(message: Message, n: int, value: bytes | None) -> Row:
    """The row of a message, with the value to be kept in it."""
    lined = None if _is_unlined(message) else Lined(*_lined(message))
    last: tuple[Any, ...] = (None if message.metadata is None else bytes(message.metadata), value, lined)
    return Row(message.queue, message.id, n, *_from_key(message), *last)


def message_of(row: Row, history: History, extra: bytes | None, value: Raw = NO_VALUE) -> Message:
    """The message of a row."""
    if history is NO_HISTORY and row.metadata is None and extra is None and row.lined is None:
        return Message(row.queue, row.id, value, *_from_number(row))
    rest: tuple[Any, ...] = (history.last_error, row.endings, history.endings, None if row.metadata is None else Raw(row.metadata))
    lined = () if row.lined is None else astuple(row.lined)
    return Message(row.queue, row.id, value, *_from_number(row), *rest, *EXTRA.read(extra), *lined)


def is_large(value: Raw) -> bool:
    """Whether the value lies apart."""
    return len(memoryview(value)) > LARGE_BYTES


def standing(tables: Tables, row: Row) -> list[tuple[Handle, bytes, bytes]]:
    """In which orders a message stands: table, key and what is kept there."""
    queue, id_ = scope(row.queue), row.id.encode()
    if row.state == "ready":
        alarm = row.start_alarm
        line = (tables.ready, line_key(queue, row.priority, row.position, row.n), moment_start(alarm) + id_)
        places = [line] if alarm == NEVER else [line, (tables.starts, moment_key(queue, alarm, row.n), id_)]
        return places if row.lined is None else [*places, *_in_lane(tables, row, row.lined)]
    if row.state == "leased":
        return [(tables.leased, moment_key(queue, row.until, row.n), id_)]
    if row.state == "dead":
        return [(tables.dead, moment_key(queue, row.dead_at or 0, row.n), id_)]
    if row.state == "done" and row.lined is not None:
        return [(tables.done, moment_key(queue, row.lined.ended_at or 0, row.n), id_)]
    return []


def _in_lane(tables: Tables, row: Row, lined: Lined) -> list[tuple[Handle, bytes, bytes]]:
    id_ = row.id.encode()
    if lined.lane is None:
        return []
    if lined.rank is None:
        return [(tables.delayed, moment_key(scope(row.queue), row.position, row.n), id_)]
    key = line_key(lane_start(row.queue, lined.lane), lined.level, lined.rank, row.n)
    return [(tables.lines, key, moment_start(row.start_alarm) + id_)]


def lane_start(queue: str, lane: str) -> bytes:
    """What every place in a lane begins with."""
    return scope(queue) + scope(lane)


def key_place(row: Row) -> bytes | None:
    """Where its key points to it, if it has one and lives."""
    if row.key is None or row.state in ("dead", "done"):
        return None
    return text_key(scope(row.queue) + (BUFFERED if row.state == "buffered" else LIVING), row.key)
