"""The fields of a message that have no place of their own in a row: those that are used stand together, as one JSON object.

So a field that is added to `Message` changes no stored form. Only a put sets such a field, also one that updates the message under its key.
Nothing else writes it, so a process of a release that does not know the field leaves it as it is.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import Struct, defstruct, json
from msgspec.structs import astuple, fields

from holdfast.commands.plain import uses_only
from holdfast.commands.putting import KEPT
from holdfast.records import Message

LAST_OWN = "metadata"
"""The last field of a message that has a place of its own."""

LINED = ("lane", "level", "rank", "tied", "ended_at", "trace")
"""The fields behind it that change with the state of a message: they have places of their own, too, and stand last."""


READ = 1_000
"""So many different ones are kept as they were read: messages of one group, or with the same labels, have the same."""


class Extra:
    """What is kept of the fields of a struct behind a certain one."""

    def __init__(self, kind: type[Struct]) -> None:
        names = kind.__struct_fields__
        self.own: tuple[str, ...] = names[: names.index(LAST_OWN) + 1]
        """The fields that have a place of their own."""
        known = [(one.name, one.type, one.default) for one in fields(kind) if one.name not in (*self.own, *LINED)]
        self.names: tuple[str, ...] = tuple(name for name, _, _ in known)
        """The others, in the order of `read`."""
        self._is_unused = uses_only(kind, *self.own, *LINED)
        self._record = defstruct("ExtraFields", known, frozen=True, omit_defaults=True)
        self._read: Callable[[Any], tuple[Any, ...]] = _reader(self.names)
        self._decode = lru_cache(maxsize=READ)(json.Decoder(self._record).decode)
        self._unused: tuple[Any, ...] = astuple(self._record())

    def write(self, record: Any) -> bytes | None:
        """What to keep of the record; None where it uses none of these fields."""
        return None if self._is_unused(record) else json.encode(self._record(*self._read(record)))

    def read(self, kept: bytes | None) -> tuple[Any, ...]:
        """The arguments behind its own that make the record again; what a later release added is left out."""
        return self._unused if kept is None else astuple(self._decode(kept))


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    read = attrgetter(*names, "__class__")  # Of one name alone it would be no tuple.
    return lambda record: read(record)[:-1]


EXTRA = Extra(Message)

PUT_FIELDS = tuple(name for name in KEPT if name not in (*EXTRA.own, "group"))
"""Those that are options of a put, but for the group, which events tell. A fast path that keeps whole messages knows them all."""
