"""The protocol of a codec."""

from typing import Any, Protocol

from msgspec import Raw


class Codec(Protocol):
    """Turns a value into the JSON text a store keeps, and back.

    A value comes back equal and of the same types, or `encode` refuses it with a TypeError that names
    the place inside the value (`$.items[2].when`).
    """

    name: str

    def encode(self, value: object) -> Raw:
        """Give the value as UTF-8 JSON text; equal values of the same types give the same text."""
        ...

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        """Give the value back; ValueError for text that no codec of this kind wrote."""
        ...
