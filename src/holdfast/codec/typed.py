"""Codecs for declared types: msgspec Structs, dataclasses, pydantic models, TypedDicts, generics."""

from typing import Any, is_typeddict

import msgspec
from msgspec import Raw

from holdfast.codec.json import JSON
from holdfast.codec.protocol import Codec
from holdfast.codec.texts import TEXTS
from holdfast.codec.value_errors import refusal

_MISFITS = (
    ArithmeticError,
    msgspec.MsgspecError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


def codec_for(type_: Any, codec: Codec | None) -> Codec:
    """The codec of a declared type, else the one given, else that of plain data; ValueError for both."""
    if type_ is not None and codec is not None:
        raise ValueError("give type= or codec=, not both")
    return (codec or JSON) if type_ is None else typed(type_)


def typed(type_: Any) -> Codec:
    """Make a codec whose values come back as `type_`, equal to what was put.

    Parts come back as the declared types (an int put in a float field as a float, a named time zone
    as its offset); where the result would not equal the value, `encode` refuses.
    """
    return _Typed(type_)


class _Typed:
    def __init__(self, type_: Any) -> None:
        self._type = type_
        self.name = getattr(type_, "__name__", None) or str(type_)
        self._class = type_ if isinstance(type_, type) and not is_typeddict(type_) else object
        self._encode = msgspec.json.Encoder(order="sorted", enc_hook=_dump_model).encode
        self._decode = msgspec.json.Decoder(type_, dec_hook=_load_model).decode

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        return typed, (self._type,)

    def encode(self, value: object) -> Raw:
        if not isinstance(value, self._class):
            raise refusal(None, f"{type(value).__name__} is not {self.name}")
        try:
            text = self._text_of(value)
            # msgspec writes more than the type can bring back (a tuple in a field of any type).
            changed = self._decode(text) != value
        except _MISFITS as error:
            raise refusal(None, f"it does not fit {self.name}: {error}") from error
        if changed:
            raise refusal(None, f"it would not come back from {self.name} as an equal value")
        return Raw(text)

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        try:
            return self._decode(raw)
        except _MISFITS as error:
            raise ValueError(f"stored value does not fit {self.name}: {error}") from error

    def _text_of(self, value: object) -> bytes:
        try:
            return self._encode(value)
        except TypeError:
            # A sorting encoder takes only dicts with text keys, even where the type says how to read others.
            return self._encode(msgspec.to_builtins(value, str_keys=True, order="sorted", enc_hook=_dump_model))


def _dump_model(value: Any) -> object:
    """Give a pydantic model as plain data, without importing pydantic, and text that knows more as text."""
    if type(value) in TEXTS:
        return str(value)
    if not hasattr(value, "model_dump"):
        raise TypeError(f"{type(value).__name__} is neither plain data nor a declared type")
    return value.model_dump(mode="json", by_alias=True, round_trip=True)


def _load_model(type_: Any, form: object) -> object:
    if not hasattr(type_, "model_validate_json"):
        raise TypeError(f"{type_!r} is not a type that can be read from JSON")
    # From JSON text: a strict model takes a date from text only there.
    return type_.model_validate_json(msgspec.json.encode(form))
