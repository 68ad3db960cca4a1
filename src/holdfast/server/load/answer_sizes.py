"""Sizes of results: the maximum before a command is executed, and the actual one."""

from typing import Any, Final

from holdfast.codec import Limits
from holdfast.commands import Browse, Browsed, Changes, Claim, Claimed, Command, Entries, Fences, Look, Names, Page, Read, Together, Write

KIB: Final = 2**10

EACH: Final[dict[type[Command[Any]], int]] = {Names: KIB, Look: KIB, Fences: KIB}
"""What each thing that these are about may bring."""

VALUES: Final = (Browse, Read, Claim, Changes, Write)
"""What brings values."""


def may_bring(command: Command[Any], limits: Limits) -> int:
    """How many bytes the answer may have, at most; 0 where it is short in any case."""
    if isinstance(command, Together):
        return min(limits.answer_bytes, sum(may_bring(part, limits) for part in command.commands))
    each = limits.value_bytes if isinstance(command, VALUES) else EACH.get(type(command), 0)
    return min(limits.answer_bytes, each * command.measure(limits)) if each else 0


def brought(answer: Any) -> int:
    """How many bytes of values, metadata, errors and events there are in an answer."""
    match answer:
        case Browsed() | Claimed():
            return sum(message.size_bytes for message in answer.messages)
        case Entries():
            return sum(entry.size_bytes for entry in answer.entries)
        case Page():
            return sum(event.size_bytes for event in answer.events)
        case list():
            return sum(map(brought, answer))
    return 0
