"""How a command is encoded for Redis: its script's argument, and the decoder of its result."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Raw, Struct
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


@cache
def _sent_fields(kind: type[Struct], but: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    """The fields of a struct that are sent, each with the name under which, and whether it is a duration."""
    left_out = (*but, "id") if issubclass(kind, Command) else but  # The id of a command is an argument of its own.
    names = [name for name in kind.__struct_fields__ if name not in left_out]
    return tuple((name, name.removesuffix("_s"), name.endswith("_s")) for name in names)


def given(struct: Struct, *but: str) -> Fields:
    """The fields of a command, or of a part of one, as its script reads them, but for some; None and False are left out.

    Durations, whose names end in `_s`, are sent without that ending, in microseconds.
    """
    sent = _sent_fields(type(struct), but)
    return _given(sent, [getattr(struct, name) for name, _, _ in sent])


def listed_from(command: Any) -> Fields:
    """The fields of a command that lists by prefix, in an order by text; `from` is the bound at which those behind `after` begin."""
    prefix, after = command.prefix, command.after
    start = "(" + after if after is not None and after >= prefix else "[" + prefix
    return {**given(command, "after"), "from": start}


def _given(sent: Sequence[tuple[str, str, bool]], contents: Sequence[Any]) -> Fields:
    fields: Fields = {}
    for (_, name, is_duration), content in zip(sent, contents, strict=True):
        if content is not None and content is not False and content is not UNSET:
            fields[name] = moment_in(content) if is_duration else text(content) if type(content) is Raw else content
    return fields


class Repeated:
    """The fields of a kind of command, but for some, as `given` sends them: commands repeat each other, so each form is worked out once."""

    def __init__(self, kind: type[Command[Any]], *but: str) -> None:
        sent = _sent_fields(kind, but)
        read = attrgetter(*(name for name, _, _ in sent))

        @lru_cache(maxsize=256)
        def work_out(contents: tuple[Any, ...]) -> Fields:
            return _given(sent, contents)

        self.of: Callable[[Command[Any]], Fields] = lambda command: work_out(read(command)).copy()


def stated_fields(kind: type[Struct], names: Sequence[str]) -> Callable[[Any], Fields]:
    """A function that returns the fields of a struct, of those named, that differ from their defaults, as those of records are kept.

    Compiled from their names, as that of `records` is: a loop over them takes three times as long, for every message with an option.
    """
    defaults = {field.name: field.default for field in struct_fields(kind) if field.name in names}
    lines = ["def stated(struct):", "    found = {}"]
    for name in names:
        sent = "moment_in(content)" if name.endswith("_s") else "text(content) if type(content) is Raw else content"
        lines += [
            f"    content = struct.{name}",
            f"    if content is not defaults[{name!r}] and content != defaults[{name!r}]:",
            f"        found[{name.removesuffix('_s')!r}] = {sent}",
        ]
    made: dict[str, Any] = {"defaults": defaults, "moment_in": moment_in, "text": text, "Raw": Raw}
    exec("\n".join([*lines, "    return found"]), made)  # noqa: S102 - of the names of our own fields
    stated: Callable[[Any], Fields] = made["stated"]
    return stated
