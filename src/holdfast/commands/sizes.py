"""Sizes of commands and their results: which commands must not make others wait, and how many bytes they may bring."""

from typing import Any, Final

from holdfast.codec import Limits
from holdfast.commands.claim_line import Claimed
from holdfast.commands.claiming import Claim
from holdfast.commands.command import Command
from holdfast.commands.dicts import Entries, Read, Write
from holdfast.commands.events import Changes, Page
from holdfast.commands.looking import Look
from holdfast.commands.moving import Browse, Browsed
from holdfast.commands.objects import Names
from holdfast.commands.surveying import Fences
from holdfast.commands.together import Together, only_reads

LARGE: Final = 100
"""A command that writes, and is about more things than this, is large."""

LARGE_READ: Final = 500
"""So is one that only reads, and may go through more than this."""

KIB: Final = 2**10

LONG_BYTES: Final = 2**20
"""An answer of more bytes than this is long: it takes a while to be read, decoded and encoded."""

EACH: Final[dict[type[Command[Any]], int]] = {Names: KIB, Look: 2 * KIB, Fences: KIB}
"""What each thing that these are about may bring."""

VALUES: Final = (Browse, Read, Claim, Changes, Write)
"""What brings values."""


def is_large(command: Command[Any], limits: Limits) -> bool:
    """Whether others must not wait for the command; raises ValueError if it is over the limits."""
    size = command.measure(limits)
    return size > LARGE and (size > LARGE_READ or not only_reads(command))


def may_be_long(command: Command[Any], limits: Limits) -> bool:
    """Whether the command only reads, and its answer may be long."""
    return only_reads(command) and may_bring(command, limits) > LONG_BYTES


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
