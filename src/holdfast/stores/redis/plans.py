"""What a command becomes on its way to Redis and back: its script's argument, and its answer."""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any, Generic, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import fields as struct_fields

from holdfast.commands import Command
from holdfast.records import moment_in

C = TypeVar("C", bound=Command[Any])

Object = tuple[str, str]
"""Kind and name: `("queue", "jobs")`, `("dict", "settings")`, `("lease", "leader")`."""

Fields = dict[str, Any]


class Plan(Struct, Generic[C], frozen=True):
    """How one kind of command goes and comes back."""

    fields: Callable[[C], Fields]
    """The command as its script reads it."""
    answer: Callable[[C, bytes], Any]
    fast_also: tuple[str, ...] = ()
    """The fields that the fast path of the script knows besides those of every fast path."""


Plans = dict[type[Command[Any]], Plan[Any]]


@lru_cache(maxsize=10_000)
def key_of(prefix: str, kind: str, name: str) -> str:
    """The key of an object; the scripts know the same rule. Only the braces around it are a hash tag, whatever the name is."""
    escaped = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{{{kind}:{escaped}}}"


def text(raw: Raw) -> str:
    """A value as text: the scripts' msgpack knows no bytes."""
    return str(raw, "utf-8")


def as_sent(content: Any) -> Any:
    """What a field holds, as the scripts read it."""
    return text(content) if isinstance(content, Raw) else content


@cache
def _sent_fields(kind: type[Struct], but: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The fields of a struct that are sent, each with the name under which; the id of a command is an argument of its own."""
    left_out = (*but, "id") if issubclass(kind, Command) else but
    return tuple((name, name.removesuffix("_s")) for name in kind.__struct_fields__ if name not in left_out)


def given(struct: Struct, *but: str) -> Fields:
    """The fields of a command, or of a part of one, as its script reads them, but for some; None and False are left out.

    Durations, whose names end in `_s`, are sent without that ending, in microseconds.
    """
    fields: Fields = {}
    for name, sent in _sent_fields(type(struct), but):
        content = getattr(struct, name)
        if content is not None and content is not False:
            fields[sent] = moment_in(content) if sent != name else as_sent(content)
    return fields


@cache
def _defaults(kind: type[Struct]) -> dict[str, Any]:
    return {field.name: field.default for field in struct_fields(kind)}


def kept(struct: Struct, kind: type[Struct], names: Iterable[str] | None = None) -> Fields:
    """The fields of a record, all or some, that are kept: those that differ from the defaults of this kind of record."""
    defaults = _defaults(kind)
    found = {name: getattr(struct, name) for name in names or defaults}
    return {name: as_sent(content) for name, content in found.items() if content != defaults[name]}
