"""The base of all commands: plain data with two halves, `check` and `write`."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from msgspec import Struct, json
from msgspec.structs import force_setattr

from holdfast.codec import Limits
from holdfast.commands.allowance import Allowance
from holdfast.commands.names import Renamer, Verb
from holdfast.commands.plain import is_plain
from holdfast.commands.transaction import Transaction

R = TypeVar("R")
Tx = TypeVar("Tx", bound=Transaction)
C = TypeVar("C", bound="Command[Any]")

COUNTED: Final = 1_000
"""What a command counts for that looks at everything in a queue or dict, however much that is."""

Resource = tuple[str | None, ...]


class Command(Struct, Generic[R], frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True, forbid_unknown_fields=True):
    """One atomic thing to ask of a store; its JSON is the wire.

    `check` reads and returns a plan, or refuses by raising. `write` carries the plan out and cannot fail for reasons of meaning.
    """

    verb: ClassVar[Verb]
    """What it takes on the things that it names first of all."""
    reads_only: ClassVar[bool] = False
    answer_type: ClassVar[Any] = None
    plain_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that the fast path of every store knows, for a command that has fast paths."""

    id: str = ""
    """Made by the client where a wire is crossed: a repeated command with the same id is answered, not applied again."""

    @abstractmethod
    def check(self, tx: Transaction) -> Any:
        """Read, and return the plan that only this command's `write` understands."""

    @abstractmethod
    def write(self, tx: Transaction, plan: Any) -> R:
        """Carry the plan out, and answer."""

    @abstractmethod
    def named(self, names: Renamer) -> Self:
        """The same command under other names; each name in it is shown to `names`, and nothing else says what a command is about."""

    def measure(self, limits: Limits) -> int:
        """Refuse, with a ValueError, what is over the store's limits; return how many things it is about, at most."""
        del limits
        return 1

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        """What it changes (True) or relies on (False): two commands of one step must not clash."""
        return iter(())

    def plain(self, *also: str) -> bool:
        """Whether a fast path may execute it: it uses no field but the plain ones and those that the store's fast path knows `also`.

        Every other command is executed by the full rules. So is a plain one, where what is stored asks for it.
        """
        return bool(self.plain_fields) and is_plain(self, also)

    def strictly(self) -> "Command[R]":
        """The same command, refusing as a whole when any of its items fails."""
        return self

    def can_grant(self) -> bool:
        """Whether its answer may be something that is held, or taken, and so can be taken back."""
        return type(self).undo is not Command.undo

    def undo(self, answer: R) -> "list[Command[Any]]":
        """What takes it back, in this order, for a caller who was cancelled before the answer came; empty where nothing is held.

        Each for itself: what cannot be taken back any more must not keep the rest.
        """
        del answer
        return []

    def note(self, answer: R) -> bytes:
        """What to keep so that a repetition can be answered."""
        return json.encode(answer)

    def recall(self, tx: Transaction, note: bytes) -> R:
        """The answer again, from its note."""
        del tx
        answer: R = json.decode(note, type=self.answer_type)
        return answer


def with_fields(struct: Any, **fields: Any) -> Any:
    """A copy with other fields, unchecked: every command pays for this, so what was checked is not checked again."""
    changed = struct.__copy__()
    for name, value in fields.items():
        force_setattr(changed, name, value)
    return changed


def as_a_whole(command: C) -> C:
    """The same command with `all_or_none`."""
    whole: C = command if command.all_or_none else with_fields(command, all_or_none=True)  # type: ignore[attr-defined] # only commands with this field ask
    return whole


def by_halves(tx: Transaction, command: Command[R]) -> R:
    """Carry a command out by its own rules."""
    return command.write(tx, command.check(tx))


def run(tx: Tx, command: Command[R], carry_out: Callable[[Tx, Command[R]], R] = by_halves) -> R:
    """Execute a command in an open transaction, or answer it from its note if it was executed before."""
    tx.allowance = Allowance()
    if not command.id or command.reads_only:
        return carry_out(tx, command)
    note = tx.recall(command.id)
    if note is not None:
        return command.recall(tx, note)
    answer = carry_out(tx, command)
    tx.record(command.id, command.note(answer))
    return answer
