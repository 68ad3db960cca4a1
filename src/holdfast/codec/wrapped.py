"""Codecs wrapped in JSON: msgpack and pickle in base64, and objects by reference."""

import re
from typing import Any, cast

import msgspec
from msgspec import Raw

from holdfast.codec.json import JSON
from holdfast.codec.protocol import Codec
from holdfast.codec.scalars import base64_bytes, base64_text
from holdfast.codec.tags import Tagger, untag
from holdfast.codec.value_errors import refusal

_pack = msgspec.msgpack.Encoder(order="sorted").encode
_unpack = msgspec.msgpack.Decoder().decode
_tag = Tagger(native=frozenset({bytes}), text=_pack).tag
_WRAPPED = re.compile(rb'\{"(?P<tag>\$[a-z]+)":"(?P<data>[A-Za-z0-9+/=]*)"\}')


class _Msgpack:
    """The types that JSON takes, packed with msgpack; reads what JSON wrote, too."""

    name = "msgpack"

    def encode(self, value: object) -> Raw:
        return _wrap("$msgpack", _pack(_tag(value)))

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        data = _unwrap("$msgpack", raw)
        if data is None:
            return JSON.decode(raw)
        try:
            return untag(_unpack(data))
        except (RecursionError, msgspec.DecodeError) as error:
            raise ValueError(f"stored value is not msgpack: {error}") from error


class _Pickle:
    """Whatever pickle takes; reads what JSON wrote, too.

    Anyone who can write to the store can run code in every process that reads with this codec. What
    comes back is what pickle makes of it, and equal values may give different text, which
    compare-and-set takes for different values.
    """

    name = "pickle"

    def encode(self, value: object) -> Raw:
        import pickle  # noqa: PLC0415 - only for those who choose it

        try:
            return _wrap("$pickle", pickle.dumps(value, protocol=5))
        except (AttributeError, RecursionError, TypeError, pickle.PicklingError) as error:
            raise refusal(None, f"pickle refuses it: {error}") from error

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        import pickle  # noqa: PLC0415 - only for those who choose it

        data = _unwrap("$pickle", raw)
        return JSON.decode(raw) if data is None else pickle.loads(data)  # noqa: S301 - chosen by the caller


class _Reference:
    """The object itself, never copied; only for a memory store, and only on request."""

    name = "reference"

    def encode(self, value: object) -> Raw:
        return cast("Raw", value)

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        return raw


def _wrap(tag: str, data: bytes) -> Raw:
    return Raw(f'{{"{tag}":"{base64_text(data)}"}}')


def _unwrap(tag: str, raw: Raw | bytes | memoryview) -> bytes | None:
    match = _WRAPPED.fullmatch(bytes(raw))
    if match is None or match["tag"] != tag.encode():
        return None
    return base64_bytes(match["data"].decode())


MSGPACK: Codec = _Msgpack()
PICKLE: Codec = _Pickle()
REFERENCE: Codec = _Reference()
