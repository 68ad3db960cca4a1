"""The default codec: plain JSON where possible, tagged forms otherwise."""

from collections.abc import Iterable
from math import isfinite
from types import NoneType
from typing import Any, cast

import msgspec
from msgspec import Raw

from holdfast.codec.protocol import Codec
from holdfast.codec.scalars import INT_MAX, INT_MIN
from holdfast.codec.tags import DEPTH, Tagger, is_tagged, untag

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
_tag = Tagger(native=frozenset(), text=_encode).tag
_ALWAYS_PLAIN = frozenset({str, bool, NoneType})


class _Json:
    name = "json"

    def encode(self, value: object) -> Raw:
        try:
            if _is_plain(value):
                return Raw(_encode(value))
        except UnicodeEncodeError:
            pass  # A lone surrogate: the tagger finds where it is and refuses it.
        return Raw(_encode(_tag(value)))

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        text = bytes(raw)
        try:
            value = _decode(text)
            return untag(value) if b'"$' in text else value
        except RecursionError:
            raise ValueError("stored value is nested too deeply to be read") from None
        except msgspec.DecodeError as error:
            raise ValueError(f"stored value is not JSON: {error}") from error


def _is_plain(value: object) -> bool:
    """Whether JSON has the same form for the value; every put pays for this walk, so it is written for speed."""
    kind = type(value)
    if kind in _ALWAYS_PLAIN:
        return True
    if kind is dict:
        return _is_plain_dict(cast("dict[str, object]", value), DEPTH)
    return _are_plain(cast("list[object]", value) if kind is list else (value,), DEPTH)


def _is_plain_dict(value: dict[str, object], room: int) -> bool:
    for key in value:
        if type(key) is not str:
            return False
    if len(value) == 1 and is_tagged(value):
        return False
    return _are_plain(value.values(), room)


def _are_plain(items: Iterable[Any], room: int) -> bool:
    for item in items:
        kind = type(item)
        if kind in _ALWAYS_PLAIN:
            continue
        if kind is int:
            if not INT_MIN <= item <= INT_MAX:
                return False
        elif kind is float:
            if not isfinite(item):
                return False
        elif room == 1 or not ((kind is dict and _is_plain_dict(item, room - 1)) or (kind is list and _are_plain(item, room - 1))):
            return False
    return True


JSON: Codec = _Json()
