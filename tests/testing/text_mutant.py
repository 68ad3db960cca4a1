"""A fault that is planted in the text of a store's own code."""

from msgspec import Struct


class TextMutant(Struct, frozen=True):
    """A pattern in the store's own code, and what to put instead."""

    name: str
    find: str
    instead: str
    noticed_by: str
