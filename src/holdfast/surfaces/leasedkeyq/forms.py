"""Encodes keys and values, except for a store that keeps references."""

from collections.abc import Callable, Hashable
from typing import Any, Final

from holdfast.codec import Codec, decode_key, encode_key


class NoneKey:
    """Stands for the key None, which to a store means no key."""


NONE_KEY: Final = NoneKey()


class ByReference:
    """Keys and values are the caller's own objects."""

    def key_in(self, key: Hashable) -> Any:
        return NONE_KEY if key is None else key

    def key_out(self, key: Any) -> Any:
        return None if key is NONE_KEY else key

    def value_in(self, value: Any) -> Any:
        return value

    def value_out(self, value: Any) -> Any:
        return value


class Encoded:
    """Keys are text that tells types apart; values are what the codec makes of them."""

    def __init__(self, codec: Codec) -> None:
        self.value_in: Callable[[Any], Any] = codec.encode
        self.value_out: Callable[[Any], Any] = codec.decode
        self.key_in: Callable[[Any], Any] = encode_key
        self.key_out: Callable[[Any], Any] = decode_key


Form = ByReference | Encoded
"""From a caller's keys and values to the store's, and back."""
