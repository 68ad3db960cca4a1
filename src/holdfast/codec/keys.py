"""Encodes keys as canonical text. The type is part of a key: `1`, `1.0`, `true` and `"1"` are four keys.

Tuples are JSON arrays, so that the text of a tuple begins with the text of its first members.
"""

from collections.abc import Hashable
from datetime import date, datetime
from math import isfinite
from types import NoneType
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.codec.scalars import INT_MAX, INT_MIN, SCALARS
from holdfast.codec.tags import is_tagged, read_form
from holdfast.codec.texts import TEXTS
from holdfast.codec.value_errors import Unfit

KEY_BYTES: Final = 400
_KEY_DEPTH: Final = 8

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
_PLAIN = frozenset({str, bool, NoneType})
_TAGGED = frozenset({int, float, bytes, UUID, date, datetime})
_TAGS = frozenset(SCALARS[kind].tag for kind in _TAGGED)


def encode_key(key: Hashable, limit_bytes: int = KEY_BYTES) -> str:
    """Give a key's text; keys that differ in value or type differ in text.

    -0.0 is the key 0.0, as in a Python dict. TypeError for what cannot be a key, ValueError for one
    that is too long.
    """
    text = _text(key)
    if len(text) > limit_bytes:
        raise ValueError(f"key {_shown(text)} is {len(text):,} bytes encoded, more than the limit of {limit_bytes:,}")
    return text.decode()


def decode_key(text: str) -> Hashable:
    """Give back the key that `encode_key` wrote; ValueError for any other text."""
    try:
        return _key_of(_decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"stored key {text[:60]!r} is not JSON: {error}") from error


def key_prefix(prefix: str | tuple[Hashable, ...]) -> str:
    """Give what the text of every key under a prefix begins with, and of no other key.

    Under a str are the str keys that begin with it; under a tuple the longer tuples.
    """
    if type(prefix) is str:
        # No character's escape begins another's, so text prefixes are the prefixes of the key.
        return _text(prefix)[:-1].decode()
    if type(prefix) is tuple:
        opening = _text(prefix)[:-1].decode()
        return opening + "," if prefix else opening
    raise TypeError(f"a key prefix must be a str or a tuple, not {type(prefix).__name__}")


def decode_key_prefix(text: str) -> str | tuple[Hashable, ...]:
    """Give back the prefix that `key_prefix` wrote; any other text as it is."""
    closed = text + '"' if text[:1] == '"' else (text.removesuffix(",")) + "]"
    try:
        prefix: Any = decode_key(closed)
    except ValueError:
        return text
    return prefix if type(prefix) in (str, tuple) and key_prefix(prefix) == text else text


def _text(key: Hashable) -> bytes:
    try:
        return _encode(key if type(key) is str else _form(key, _KEY_DEPTH))
    except UnicodeEncodeError:
        raise ValueError(f"key {ascii(key)[:60]} has a lone surrogate, which is not Unicode") from None


def _form(key: Any, room: int) -> object:
    kind = type(key)
    if kind in _PLAIN:
        return key
    if kind in TEXTS:
        return str(key)
    if kind in _TAGGED:
        return _scalar_form(key)
    if kind is not tuple:
        raise TypeError(f"a key must be a str, int, float, bool, None, bytes, UUID, date, datetime or a tuple of them, not {kind.__name__}")
    if not room:
        raise ValueError(f"a key may be at most {_KEY_DEPTH} tuples deep")
    return [_form(item, room - 1) for item in key]


def _scalar_form(key: Any) -> object:
    kind = type(key)
    if kind is int and INT_MIN <= key <= INT_MAX:
        return key
    if kind is float and isfinite(key):
        return key + 0.0  # -0.0 + 0.0 is 0.0
    scalar = SCALARS[kind]
    try:
        return {scalar.tag: scalar.write(key)}
    except Unfit as unfit:
        raise TypeError(f"key of type {kind.__name__}: {unfit}") from None


def _key_of(form: Any) -> Hashable:
    if type(form) is list:
        return tuple(_key_of(item) for item in form)
    if type(form) is not dict:
        return form  # type: ignore[no-any-return]
    tag = next(iter(form), "")
    if not is_tagged(form) or tag not in _TAGS:
        raise ValueError(f"stored key has an unknown form: {_shown(_encode(form))}")
    return read_form(tag, form[tag])  # type: ignore[no-any-return]


def _shown(text: bytes) -> str:
    shown = text.decode()
    return shown if len(shown) <= 60 else shown[:60] + "…"  # noqa: PLR2004
