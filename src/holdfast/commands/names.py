"""The names in a command, and the right it needs on each.

Each command shows its names to a `Renamer` in one method, `named`. Scopes, namespaces and the keys of a Redis script are derived from it,
so a field that holds a name is declared once.
"""

from collections.abc import Sequence
from operator import is_
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from holdfast.records.policies import Kind

S = TypeVar("S", bound=Struct)

Verb = Literal["read", "put", "claim", "write", "hold", "manage", "signal", "admin"]
"""What a command does to what it names, in the word that a token's scope allows it by."""

Listable = Kind | Literal["lease"]
"""What has names that can be listed."""

Whole = Literal["log", "copy"]
"""A command about no single thing: it keeps the log short, or copies the store."""


class Renamer(Protocol):
    """Is shown every name in a command, with what the command does to it, and returns the name to use instead."""

    def object(self, kind: Kind, name: str, verb: Verb) -> str:
        """A queue or dict that the command reads or changes."""
        ...

    def later(self, queue: str) -> str:
        """A queue into which a message may be put later: its dead-letter queue."""
        ...

    def lease(self, name: str | None, key: str, verb: Verb) -> tuple[str | None, str]:
        """The dict and key of a lease; a lock or an election has no dict, and its key is its name."""
        ...

    def listed(self, kind: Listable, prefix: str, after: str | None, verb: Verb, *, exact: bool) -> tuple[str, str | None]:
        """A list of names by their prefix, from behind one of them."""
        ...

    def topic(self, topic: str, verb: Verb) -> str:
        """A topic, which holds a name."""
        ...

    def whole(self, what: Whole) -> None:
        """The store as a whole."""
        ...


def renamed(struct: S, **fields: Any) -> S:
    """The struct with these fields; itself where nothing changes."""
    for name, value in fields.items():
        if getattr(struct, name) is not value:
            return replace(struct, **fields)
    return struct


def all_renamed(structs: Sequence[S], others: list[S]) -> Sequence[S]:
    """The others; the same sequence where nothing changed."""
    return structs if all(map(is_, structs, others)) else others


def later(names: Renamer, queue: str | None) -> str | None:
    """A dead-letter queue, if there is one."""
    return None if queue is None else names.later(queue)
