"""Checks of imported records, which are stored as they come."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from holdfast.codec.fields import (
    GROUP,
    HOLDER,
    MAX_ATTEMPTS,
    MAXSIZE,
    PRIORITY,
    REVISION,
    TOKEN,
    TRACE,
    Field,
    Whole,
    check_fields,
    error_text,
    key_text,
    moment,
    name_text,
    number,
)
from holdfast.commands.transaction import Fenced
from holdfast.records import Ending, Entry, Message
from holdfast.records.policies import Lane, Settings

_COUNT: Final = 2**31 - 1
_RAISED: Final = 2**52
"""The target counts on from here, and what it gives out must stay below 2^53."""

SURVEYED: Final[tuple[Field, ...]] = (moment("now"), Whole("latest", 0, _RAISED), Whole("next_n", 0, _RAISED))
GATE: Final[tuple[Field, ...]] = (Whole("live", 0, _COUNT), moment("tat"), number("last"), moment("throttled_until"))
SETTINGS: Final[tuple[Field, ...]] = (name_text("name"), MAXSIZE, Whole("size", 0, _COUNT), moment("created_at"), *GATE)
MESSAGE: Final[tuple[Field, ...]] = (
    name_text("queue"),
    name_text("id"),
    key_text("key", optional=True),
    number("n"),
    PRIORITY,
    moment("position"),
    Whole("attempts", 0, _COUNT),
    Whole("failures", 0, _COUNT),
    MAX_ATTEMPTS,
    moment("start_by", optional=True),
    moment("created_at"),
    name_text("dead_letter", optional=True),
    HOLDER,
    TOKEN,
    moment("since"),
    moment("until"),
    moment("dead_at", optional=True),
    error_text("last_error"),
    Whole("endings", 0, _COUNT),
    GROUP,
    name_text("lane", optional=True),
    Whole("level", PRIORITY.least, PRIORITY.most),
    Whole("rank", -TOKEN.most, TOKEN.most, optional=True),
    Whole("tied", 0, 15),
    moment("ended_at", optional=True),
    TRACE,
)
ENDING: Final[tuple[Field, ...]] = (HOLDER, TOKEN, moment("since"), moment("until"), error_text("error"))
ENTRY: Final[tuple[Field, ...]] = (name_text("dict"), key_text("key"), REVISION, number("fence"), moment("expires_at", optional=True))
FENCED: Final[tuple[Field, ...]] = (name_text("dict"), key_text("key"), number("fence"))
LANE: Final[tuple[Field, ...]] = (
    *(
        name_text("queue"),
        name_text("name"),
        number("turn"),
        Whole("place", 0, _COUNT),
        Whole("credit", 0, _COUNT),
        moment("wakes", optional=True),
    ),
    *GATE,
)


RECORDS: Final[dict[type[Struct], tuple[Field, ...]]] = {
    Settings: SETTINGS,
    Message: MESSAGE,
    Ending: ENDING,
    Entry: ENTRY,
    Fenced: FENCED,
    Lane: LANE,
}


def check_records(
    records: Sequence[Settings] | Sequence[Message] | Sequence[Ending] | Sequence[Fenced] | Sequence[Entry] | Sequence[Lane],
) -> None:
    """Refuse records with a field that some store could not keep."""
    for record in records:
        check_fields(record, RECORDS[type(record)])
        if isinstance(record, Message) and record.history:
            check_records(record.history)
