"""Messages as rows, and rows as messages. Their columns are the fields of `Message`, in the order in which it has them."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Raw, json

from holdfast.records import NEVER, NO_VALUE, Ending, Message
from holdfast.stores.files.extra import EXTRA, LINED

READ = (*LINED, *(name for name in EXTRA.own if name != "value"), "extra")
"""The columns of a message but for its value. History and metadata, which few messages have, come last but one."""

WRITTEN = tuple(name for name in (*EXTRA.own, *LINED) if name not in ("n", "history", "value"))
"""The fields that are written as they are; the history is written as JSON."""

COLUMNS = ", ".join(f"m.{name}" for name in READ)
BARE = f"{COLUMNS}, m.value is null"
"""... and, where the value itself is not asked for, whether it lies in a table of its own."""

_LINED = len(LINED)
NUMBER, VALUE, IS_APART = _LINED + 2, -1, -1
"""Columns of a row."""

LARGE_BYTES = 8_192
"""Values over this lie in a table of their own."""

_GROUP = EXTRA.names.index("group")

_decode_history = json.Decoder(tuple[Ending, ...]).decode
_written: Callable[[Message], tuple[Any, ...]] = attrgetter(*WRITTEN)


def read_message(row: tuple[Any, ...], value: Raw = NO_VALUE) -> Message:
    """The message of a row of `COLUMNS` and one column more."""
    history, metadata, extra, _ = row[-4:]
    lane, *_, queue, message_id = row[: _LINED + 2]
    own = row[_LINED + 2 : -4]
    if history is None and metadata is None and extra is None and lane is None and row[3] == 0 and row[4] is None and row[5] is None:
        return Message(queue, message_id, value, *own)
    rest: tuple[Any, ...] = (() if history is None else _decode_history(history), None if metadata is None else Raw(metadata))
    return Message(queue, message_id, value, *own, *rest, *EXTRA.read(extra), *row[:_LINED])


def alarm_of(message: Message) -> int | None:
    """When time overtakes the message."""
    if message.state == "leased":
        return message.until if message.until < NEVER else None
    if message.state == "ready" and message.lane is not None and message.rank is None:
        return message.position
    return message.start_by if message.state == "ready" and message.attempts == 0 else None


CHANGED = (*WRITTEN, "history", "alarm")
"""The columns of `write_message`."""


def write_message(message: Message) -> tuple[object, ...]:
    """What of a message changes after it was put."""
    return (*_written(message), json.encode(message.history) if message.history else None, alarm_of(message))


ADDED = ("n", *CHANGED, "extra", "value")
"""The columns of `new_row`."""


def new_row(message: Message) -> tuple[object, ...]:
    """All of a message; SQLite gives it a number where it has none."""
    return (message.n or None, *write_message(message), EXTRA.write(message), None if is_large(message.value) else bindable(message.value))


def group_in(extra: bytes | None) -> str | None:
    """The group of a message, which is among its extra fields."""
    group: str | None = EXTRA.read(extra)[_GROUP]
    return group


def bindable(value: Raw) -> bytearray:
    """The value as a parameter. For any other kind of bytes `sqlite3` looks for an adapter, which costs more than this copy."""
    return bytearray(value)


def is_large(value: Raw) -> bool:
    """Whether the value lies in a table of its own."""
    return len(value) > LARGE_BYTES
