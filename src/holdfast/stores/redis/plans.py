"""What a command becomes on its way to Redis and back: its script's argument, and its answer."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec import Raw, Struct

from holdfast.commands import Command

C = TypeVar("C", bound=Command[Any])

Object = tuple[str, str]
"""Kind and name: `("queue", "jobs")`, `("dict", "settings")`, `("lease", "leader")`."""

Fields = dict[str, Any]


class Plan(Struct, Generic[C], frozen=True):
    """How one kind of command goes and comes back."""

    fields: Callable[[C], Fields]
    """The command as its script reads it: durations and moments in microseconds, values as text, and no defaults."""
    answer: Callable[[C, bytes], Any]


Plans = dict[type[Command[Any]], Plan[Any]]


@lru_cache(maxsize=10_000)
def key_of(prefix: str, kind: str, name: str) -> str:
    """The key of an object; the scripts know the same rule. Only the braces around it are a hash tag, whatever the name is."""
    escaped = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{{{kind}:{escaped}}}"


def text(raw: Raw) -> str:
    """A value as text: the scripts' msgpack knows no bytes."""
    return str(raw, "utf-8")


def given(**fields: Any) -> Fields:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}
