"""Limits on lengths, sizes and counts, checked before anything is sent."""

import math
import re
import sys
from numbers import Real
from typing import Any, Final

from msgspec import Raw, Struct

from holdfast.codec.keys import KEY_BYTES

# A hundred years: every store can add it to the present without overflow.
DURATION_MAX_S: Final = 100 * 365 * 86_400.0

SHOWN_CHARACTERS: Final = 60

SHORT: Final = 50
"""So many characters are within every limit, whatever bytes they take."""

_MIB: Final = 1024 * 1024
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_UNKEPT = re.compile("[\x00\ud800-\udfff]")


class Limits(Struct, frozen=True):
    """How much one call may carry."""

    name_bytes: int = 200
    key_bytes: int = KEY_BYTES
    value_bytes: int = _MIB
    batch_items: int = 10_000
    batch_bytes: int = 16 * _MIB
    answer_bytes: int = 16 * _MIB
    """So much of values, metadata, errors and events one answer brings; a page or a claim that would bring more ends before."""


DEFAULT_LIMITS: Final = Limits()


def check_name(name: object, what: str = "queue", limits: Limits = DEFAULT_LIMITS) -> str:
    """Give the name back if it can be one: not empty, at most 200 bytes as UTF-8, nothing unprintable."""
    if type(name) is str and 0 < len(name) <= limits.name_bytes and name.isascii() and name.isprintable():
        return name  # Nearly all of them, and this is asked for every command.
    if not isinstance(name, str):
        raise TypeError(f"{what} name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError(f"{what} name is empty; it must have 1 to {limits.name_bytes:,} bytes")
    if _CONTROL.search(name):
        raise ValueError(f"{what} name {ascii(name)[:60]} has a control character; remove it")
    size = _size_of(name, what)
    if size > limits.name_bytes:
        raise ValueError(f"{what} name {name[:30]!a}… is {size:,} bytes long, more than the limit of {limits.name_bytes:,}")
    return name


def is_short(text: object) -> bool:
    """Whether a text is within every limit, and printable, as nearly all are."""
    return type(text) is str and len(text) <= SHORT and text.isprintable()


def keepable(text: str) -> str:
    """The text as every store can keep it: PostgreSQL's have no character 0, and a lone surrogate is not Unicode."""
    return _UNKEPT.sub("\ufffd", text)


def check_value_size(raw: Raw | bytes, limits: Limits = DEFAULT_LIMITS, what: str = "value") -> int:
    """Give an encoded value's size in bytes; ValueError if it is over the limit. `what` is the field's name, for the message."""
    size = len(raw)
    if size > limits.value_bytes:
        raise ValueError(
            f"{what} is {size:,} bytes encoded, more than the limit of {limits.value_bytes:,}; store it elsewhere and put a reference"
        )
    return size


def check_batch(items_count: int, total_bytes: int = 0, limits: Limits = DEFAULT_LIMITS) -> int:
    """How many items there are; raise ValueError for a batch of too many items or bytes."""
    if items_count > limits.batch_items:
        raise ValueError(f"batch has {items_count:,} items, more than the limit of {limits.batch_items:,}; split it")
    if total_bytes > limits.batch_bytes:
        raise ValueError(f"batch is {total_bytes:,} bytes, more than the limit of {limits.batch_bytes:,}; split it")
    return items_count


def check_duration(
    seconds: object,
    what: str,
    *,
    zero: bool = True,
    maximum: float = DURATION_MAX_S,
    allow_inf: bool = False,
    optional: bool = False,
) -> float:
    """Give a duration as a float; `what` is the argument's name, for the message, and `optional` that None is not a duration here."""
    if type(seconds) is float and (0 < seconds <= maximum or (zero and seconds == 0)):
        return seconds
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        or_none = " or None" if optional else ""
        raise TypeError(f"{what} must be a number of seconds{or_none}, not {shown(seconds)} ({type(seconds).__name__})")
    if allow_inf and seconds == math.inf:
        return math.inf
    number: Any = seconds
    if not (number >= 0 if zero else number > 0) or number > maximum:
        bounds = f"{'at least 0' if zero else 'more than 0'} and at most {maximum:,.0f} seconds{', or infinite' if allow_inf else ''}"
        raise ValueError(f"{what} must be {bounds}, not {shown(seconds)}")
    return float(seconds)


def _size_of(name: str, what: str) -> int:
    try:
        return len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} name {ascii(name)[:60]} has a lone surrogate, which is not Unicode") from None


def shown(value: object) -> str:
    """A refused argument, for the message."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return "an integer too large for a float"  # Python refuses to write an int of more than 4,300 digits.
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
