"""Several commands as one atomic step."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final, Self

from msgspec import json

from holdfast.codec import Limits
from holdfast.commands.breaking import Break
from holdfast.commands.claiming import Claim
from holdfast.commands.command import Command, Resource
from holdfast.commands.configuring import Configure
from holdfast.commands.copying import BeginImport, EndImport, Import, Seal
from holdfast.commands.counting import Counts
from holdfast.commands.dicts import Length, Read, Write
from holdfast.commands.events import Changes, Prune
from holdfast.commands.fences import LowerFences
from holdfast.commands.groups import Groups
from holdfast.commands.lease_list import Leases
from holdfast.commands.leases import Acquire, Release, Renew
from holdfast.commands.looking import Look
from holdfast.commands.moving import Browse, Count, Move
from holdfast.commands.names import Renamer, Verb, all_renamed, renamed
from holdfast.commands.objects import Clear, Names
from holdfast.commands.plain import is_plain
from holdfast.commands.putting import Put
from holdfast.commands.request import current
from holdfast.commands.resizing import Resize
from holdfast.commands.settling import Extend, Settle
from holdfast.commands.surveying import Fences, Survey
from holdfast.commands.transaction import Transaction

Step = (
    Put
    | Claim
    | Extend
    | Settle
    | Move
    | Browse
    | Count
    | Counts
    | Read
    | Length
    | Write
    | LowerFences
    | Acquire
    | Renew
    | Release
    | Resize
    | Break
    | Look
    | Leases
    | Configure
    | Clear
    | Names
    | Groups
    | Changes
    | Prune
)

APART: Final[frozenset[type[Step]]] = frozenset({Extend, Write})
"""Kinds of which one each cannot clash: claims of messages, and entries. All steps of durable jobs are made of these."""

COMMANDS: Final = 1_000
"""How many commands one step may have: all of them are one transaction, which others wait for."""


class Together(Command[list[Any]], frozen=True):
    """Check every command against the state before the step, then write them all; whatever fails refuses everything."""

    verb: ClassVar[Verb] = "read"
    """And what each of its commands takes."""

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "commands")

    commands: Sequence[Step]

    def __post_init__(self) -> None:
        if len(self.commands) > COMMANDS:
            raise ValueError(f"a step has {len(self.commands):,} commands, more than the limit of {COMMANDS:,}; split it")
        if len(self.commands) == len({type(command) for command in self.commands} & APART):
            return
        claimed: dict[Resource, bool] = {}
        for command in self.commands:
            for resource, changes in dict(command.touches()).items():
                if claimed.get(resource, False) or (changes and resource in claimed):
                    message = f"two commands of one step affect {' '.join(str(part) for part in resource)}: combine them, or use two steps"
                    raise ValueError(message)
                claimed[resource] = changes

    def named(self, names: Renamer) -> Self:
        return renamed(self, commands=all_renamed(self.commands, [command.named(names) for command in self.commands]))

    def measure(self, limits: Limits) -> int:
        # Commands about one thing are limited by their number: a batch that the server audits is as large as one that it does not.
        things = sum(size for command in self.commands if (size := command.measure(limits)) > 1)
        if things > limits.batch_items:
            raise ValueError(
                f"a step is about {things:,} items, more than the limit of {limits.batch_items:,}; split it, or give its reads a limit"
            )
        return things

    def plain(self, *also: str) -> bool:
        """Whether it is a checkpoint: one claim is renewed, and one entry is changed if it was still held."""
        if len(self.commands) != 2:  # noqa: PLR2004 - these two
            return False
        extend, write = self.commands
        return type(extend) is Extend and type(write) is Write and extend.plain() and write.plain() and is_plain(self, also)

    def check(self, tx: Transaction) -> list[tuple[Command[Any], Any]]:
        request = current.get()
        plan: list[tuple[Command[Any], Any]] = []
        for command in self.commands:
            request.check()
            strict = command.strictly()
            plan.append((strict, strict.check(tx)))
        return plan

    def write(self, tx: Transaction, plan: list[tuple[Command[Any], Any]]) -> list[Any]:
        return [command.write(tx, part) for command, part in plan]

    def can_grant(self) -> bool:
        return any(command.can_grant() for command in self.commands)

    def undo(self, answer: list[Any]) -> list[Command[Any]]:
        """Give back what its claims and leases got; what else it did stays done."""
        return [undo for command, part in zip(self.commands, answer, strict=True) for undo in command.undo(part)]

    def note(self, answer: list[Any]) -> bytes:
        return json.encode([command.note(part) for command, part in zip(self.commands, answer, strict=True)])

    def recall(self, tx: Transaction, note: bytes) -> list[Any]:
        notes = json.decode(note, type=list[bytes])
        return [command.recall(tx, part) for command, part in zip(self.commands, notes, strict=True)]


_reads_only = attrgetter("reads_only")


def only_reads(command: Command[Any]) -> bool:
    """Whether nothing is written, not even an answer to be told again: reads are made afresh, but for a step that its caller named."""
    # Not a generator: Python drops an interrupt that comes while one is given up.
    return command.reads_only or (type(command) is Together and not command.id and all(map(_reads_only, command.commands)))


AnyCommand = Step | Together | Survey | Fences | BeginImport | Import | EndImport | Seal

decode_command: Callable[[bytes | str], AnyCommand] = json.Decoder(AnyCommand).decode
encode_command: Callable[[Command[Any]], bytes] = json.Encoder().encode
