"""Scalars that JSON lacks: the tag, the encoder and the decoder of each type."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from holdfast.codec.value_errors import Unfit

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1

_Moment = TypeVar("_Moment", datetime, time)


class Scalar(NamedTuple):
    """One type's tagged form; `write` may raise Unfit, `read` whatever a malformed form provokes."""

    tag: str
    write: Callable[[Any], object]
    read: Callable[[Any], object]


def base64_text(data: bytes) -> str:
    """Give bytes as base64 on one line."""
    return b2a_base64(data, newline=False).decode()


def base64_bytes(text: str) -> bytes:
    """Give back what `base64_text` wrote; ValueError for anything else."""
    return a2b_base64(text, strict_mode=True)


def _write_int(value: int) -> str:
    # Hexadecimal: Python refuses to read or write more than 4,300 decimal digits.
    return hex(value)


def _read_int(text: str) -> int:
    return int(text, 16)


def _write_float(value: float) -> str:
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise Unfit("NaN does not equal itself, so it cannot come back equal; use None")
    return repr(value)


def _write_decimal(value: Decimal) -> str:
    if value.is_nan():
        raise Unfit("a NaN Decimal does not equal itself, so it cannot come back equal; use None")
    # The caller's decimal context may ask for a small e.
    return str(value).upper()


def _write_timedelta(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _read_timedelta(parts: list[int]) -> timedelta:
    days, seconds, microseconds = parts
    return timedelta(days, seconds, microseconds)


def _write_moment(value: datetime | time) -> str | list[object]:
    """Give ISO text, or [ISO text, fold, zone name] where ISO text alone would lose one of them."""
    zone = _zone_name(value)
    if zone is None and not value.fold:
        return value.isoformat()
    local = value if zone is None else value.replace(tzinfo=None)
    return [local.isoformat(), value.fold, zone]


def _read_moment(kind: type[_Moment], form: str | list[Any]) -> _Moment:
    if isinstance(form, str):
        return kind.fromisoformat(form)
    text, fold, zone = form
    value = kind.fromisoformat(text).replace(fold=fold)
    if zone is None:
        return value
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - slow to import, rarely needed

    return value.replace(tzinfo=ZoneInfo(zone))


def _zone_name(value: datetime | time) -> str | None:
    """Give the name of a zone that has one; None for a naive moment or a fixed offset."""
    zone = value.tzinfo
    if zone is None:
        return None
    if type(zone) is timezone:
        offset = zone.utcoffset(None)
        if offset and abs(offset) < timedelta(seconds=1):
            # Python 3.11 reads such an offset back as none.
            raise Unfit("its offset of less than a second would be lost; use a plain offset of seconds")
        if zone.tzname(None) == timezone(offset).tzname(None):
            return None
        raise Unfit(f"the name of its fixed offset ({zone.tzname(None)}) would be lost; use zoneinfo or a plain offset")
    if _leads_back(zone):
        return str(zone)
    raise Unfit(f"its time zone ({type(zone).__name__}) cannot be found again by name; use ZoneInfo(name) or a plain offset")


def _leads_back(zone: tzinfo) -> bool:
    """Whether the zone's name gives this very zone again: any other may have other rules, and compares differently."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - slow to import, rarely needed

    try:
        return type(zone) is ZoneInfo and ZoneInfo(zone.key) is zone
    except (LookupError, OSError, TypeError, ValueError):
        return False


SCALARS: Final[dict[type, Scalar]] = {
    int: Scalar("$int", _write_int, _read_int),
    float: Scalar("$float", _write_float, float),
    bytes: Scalar("$bytes", base64_text, base64_bytes),
    datetime: Scalar("$datetime", _write_moment, lambda form: _read_moment(datetime, form)),
    date: Scalar("$date", date.isoformat, date.fromisoformat),
    time: Scalar("$time", _write_moment, lambda form: _read_moment(time, form)),
    timedelta: Scalar("$timedelta", _write_timedelta, _read_timedelta),
    Decimal: Scalar("$decimal", _write_decimal, Decimal),
    UUID: Scalar("$uuid", str, UUID),
}
