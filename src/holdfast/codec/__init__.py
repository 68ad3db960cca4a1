"""Encodes values and keys as stored text, and limits their size."""

from holdfast.codec.json import JSON
from holdfast.codec.keys import KEY_BYTES, decode_key, decode_key_prefix, encode_key, key_prefix
from holdfast.codec.limits import (
    DURATION_MAX_S,
    Limits,
    check_batch,
    check_duration,
    check_name,
    check_value_size,
    keepable,
)
from holdfast.codec.protocol import Codec
from holdfast.codec.typed import codec_for, typed
from holdfast.codec.wrapped import MSGPACK, PICKLE, REFERENCE

__all__ = [
    "DURATION_MAX_S",
    "JSON",
    "KEY_BYTES",
    "MSGPACK",
    "PICKLE",
    "REFERENCE",
    "Codec",
    "Limits",
    "check_batch",
    "check_duration",
    "check_name",
    "check_value_size",
    "codec_for",
    "decode_key",
    "decode_key_prefix",
    "encode_key",
    "keepable",
    "key_prefix",
    "typed",
]
