"""Strings with attributes; stored and returned as plain strings."""

from typing import Self


class MessageId(str):
    """The id under which a message is in its queue; `created` is false where the put met one that was there already."""

    __slots__ = ("created",)

    created: bool

    def __new__(cls, id: str, *, created: bool = True) -> Self:
        made = super().__new__(cls, id)
        made.created = created
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, bool]]:
        return (str(self),), {"created": self.created}


TEXTS = frozenset({str, MessageId})
"""The types that are stored as text."""
