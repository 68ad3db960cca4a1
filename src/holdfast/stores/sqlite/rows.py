"""Messages as rows, and rows as messages."""

from typing import Any

from msgspec import Raw, json

from holdfast.records import NEVER, NO_VALUE, Ending, Message

COLUMNS = (
    "m.queue, m.id, m.n, m.key, m.priority, m.position, m.state, m.attempts, m.failures, m.max_attempts, m.dead_letter, m.start_by, "
    "m.created_at, m.holder, m.token, m.since, m.until, m.expired_to, m.dead_at, m.last_error, m.endings, m.history, m.metadata"
)
"""In the order of `Message`'s fields, but for the value."""

BARE = f"{COLUMNS}, m.value is null"
"""... and, where the value itself is not asked for, whether it lies in a table of its own."""

HISTORY, METADATA, VALUE, IS_APART = 21, 22, 23, 23

LARGE_BYTES = 8_192
"""Values over this lie in a table of their own."""

_decode_history = json.Decoder(tuple[Ending, ...]).decode


def read_message(row: tuple[Any, ...], value: Raw = NO_VALUE) -> Message:
    """The message of a row of `COLUMNS`."""
    history, metadata = row[HISTORY], row[METADATA]
    if history is None and metadata is None:
        return Message(row[0], row[1], value, *row[2:HISTORY])
    rest: tuple[Any, ...] = (() if history is None else _decode_history(history), None if metadata is None else Raw(metadata))
    return Message(row[0], row[1], value, *row[2:HISTORY], *rest)


def alarm_of(message: Message) -> int | None:
    """When time overtakes the message."""
    if message.state == "leased":
        return message.until if message.until < NEVER else None
    return message.start_by if message.state == "ready" and message.attempts == 0 else None


def write_message(m: Message) -> tuple[object, ...]:
    """The columns of `restore`, which are those of `add` but for the value."""
    return (
        m.queue,
        m.id,
        m.state,
        m.priority,
        m.position,
        alarm_of(m),
        m.key,
        m.attempts,
        m.failures,
        m.holder,
        m.token,
        m.since,
        m.until,
        m.expired_to,
        m.max_attempts,
        m.dead_letter,
        m.start_by,
        m.created_at,
        m.dead_at,
        m.last_error,
        m.endings,
        json.encode(m.history) if m.history else None,
        m.metadata,
    )


def bindable(value: Raw) -> bytearray:
    """The value as a parameter. For any other kind of bytes `sqlite3` looks for an adapter, which costs more than this copy."""
    return bytearray(value)


def is_large(value: Raw) -> bool:
    """Whether the value lies in a table of its own."""
    return len(value) > LARGE_BYTES
