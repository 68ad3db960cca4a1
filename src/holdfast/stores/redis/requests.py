"""Builds the request for a command, and decodes its result.

Pure, so that threads and tasks share it.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct, msgpack

from holdfast.commands import Command, Together
from holdfast.commands.names import Listable, Verb, Whole
from holdfast.records.policies import Kind
from holdfast.stores.redis import encode_copies, encode_dicts, encode_queues, encode_store
from holdfast.stores.redis.plans import Fields, Object, Plan, Plans, key_of

R = TypeVar("R")

Words = Sequence[str | bytes]
"""A command and its arguments. Numbers are texts: on one, hiredis crashes the process if a signal arrives at that moment (3.5.0)."""

_encode = msgpack.Encoder().encode
_decode_parts = msgpack.Decoder(list[Raw]).decode


class Request(Struct, frozen=True, gc=False):
    """What is sent: the script of `name` with these keys and this argument."""

    name: str
    keys: list[str]
    argument: bytes


class Asked:
    """A script that is to be run, and later its reply, which may be an error."""

    __slots__ = ("arguments", "name", "reply")

    def __init__(self, name: str, arguments: Words) -> None:
        self.name: str = name
        self.arguments: Words = arguments
        self.reply: Any = None

    def answer(self, reply: Any) -> None:
        self.reply = reply


def request_for(command: Command[Any], prefix: str) -> Request:
    """The command as it is sent to the store under this prefix."""
    plan = PLANS[type(command)]
    fields = plan.fields(command)
    if command.plain(*plan.fast_also):
        fields["fast"] = True
    keys = [prefix, *[key_of(prefix, *one) for one in objects_of(command)]]
    return Request(type(command).__name__, keys, _encode(fields))


def answer_to(command: Command[R], reply: bytes) -> R:
    """The answer in what the script replied."""
    answer: R = PLANS[type(command)].answer(command, reply)
    return answer


def objects_of(command: Command[Any]) -> "dict[Object, None]":
    """The objects whose keys the command's script names, in the order of the command."""
    objects = _Objects()
    command.named(objects)
    return objects.found


class _Objects:
    """Collects the objects of a command from the names in it, and leaves them as they are."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[Object, None] = {}

    def object(self, kind: Kind, name: str, verb: Verb) -> str:
        del verb
        self.found[kind, name] = None
        return name

    def later(self, queue: str) -> str:
        return queue  # The script finds out which are needed.

    def lease(self, name: str | None, key: str, verb: Verb) -> tuple[str | None, str]:
        del verb
        self.found[("lease", key) if name is None else ("dict", name)] = None
        return name, key

    def listed(self, kind: Listable, prefix: str, after: str | None, verb: Verb, *, exact: bool) -> tuple[str, str | None]:
        del kind, verb, exact
        return prefix, after

    def topic(self, topic: str, verb: Verb) -> str:
        del verb
        self.found[encode_store.log_of(topic)] = None
        return topic

    def whole(self, what: Whole) -> None:
        del what


def _together(command: Together) -> Fields:
    steps = [step.strictly() for step in command.commands]
    return {"commands": [{"command": type(step).__name__, **PLANS[type(step)].fields(step)} for step in steps]}


def _answers(command: Together, reply: bytes) -> list[Any]:
    parts = zip(command.commands, _decode_parts(reply), strict=True)
    return [PLANS[type(step)].answer(step, bytes(part)) for step, part in parts]


PLANS: Final[Plans] = {
    **encode_queues.PLANS,
    **encode_dicts.PLANS,
    **encode_store.PLANS,
    **encode_copies.PLANS,
    Together: Plan(_together, _answers),
}
