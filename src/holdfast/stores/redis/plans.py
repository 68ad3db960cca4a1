"""What a command becomes on its way to Redis and back: the objects it names, its script's argument, and its answer.

Pure, so that threads and tasks share it.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec import Raw, Struct, msgpack

from holdfast.commands import Command

C = TypeVar("C", bound=Command[Any])
R = TypeVar("R")

Object = tuple[str, str]
"""Kind and name: `("queue", "jobs")`, `("dict", "settings")`, `("lease", "leader")`."""

Fields = dict[str, Any]


class Plan(Struct, Generic[C], frozen=True):
    """How one kind of command goes and comes back."""

    objects: Callable[[C], Iterable[Object]]
    fields: Callable[[C], Fields]
    """The command as its script reads it: durations and moments in microseconds, values as text, and no defaults."""
    answer: Callable[[C, bytes], Any]


PLANS: dict[type[Command[Any]], Plan[Any]] = {}
"""By the kind of command; the modules beside this one fill it."""


class Request(Struct, frozen=True, gc=False):
    """What is sent: the script of `name` with these keys and this argument."""

    name: str
    keys: list[str]
    argument: bytes


def request_for(command: Command[Any], prefix: str) -> Request:
    """The command as it is sent to the store under this prefix."""
    plan = PLANS[type(command)]
    keys = [prefix, *dict.fromkeys([key_of(prefix, *one) for one in plan.objects(command)])]
    return Request(type(command).__name__, keys, msgpack.encode(plan.fields(command)))


def answer_to(command: Command[R], reply: bytes) -> R:
    """The answer in what the script replied."""
    answer: R = PLANS[type(command)].answer(command, reply)
    return answer


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
