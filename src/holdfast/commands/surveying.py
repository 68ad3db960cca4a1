"""What a copy reads of its source besides pages: the store as a whole, and fences."""

from itertools import islice
from typing import Any, ClassVar, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch
from holdfast.codec.fields import AFTER_FENCE, LIMIT, Field, check_fields
from holdfast.commands.command import Command
from holdfast.commands.names import Renamer, Verb
from holdfast.commands.shares import held_of
from holdfast.commands.transaction import Fenced, Transaction
from holdfast.records import Lease

SHOWN = 3
"""So many of the leases that stand in a copy's way are named."""


class Surveyed(Struct, frozen=True, gc=False, omit_defaults=True):
    """A store as a whole, at one moment."""

    now: int
    latest: int
    """The newest event's number."""
    next_n: int
    """Above every number that orders messages."""
    held: list[Lease] = []
    """Leases that live, up to a few."""


class Survey(Command[Surveyed], frozen=True):
    """Ask what a copy of this store must know before it begins."""

    verb: ClassVar[Verb] = "admin"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Surveyed

    def named(self, names: Renamer) -> Self:
        names.whole("copy")
        return self

    def check(self, tx: Transaction) -> Surveyed:
        return Surveyed(tx.now, tx.latest(), tx.next_n(), held_leases(tx, SHOWN))

    def write(self, tx: Transaction, plan: Surveyed) -> Surveyed:
        del tx
        return plan


class Fences(Command[list[Fenced]], frozen=True):
    """List the fences of keys, deleted ones too, by dict and key, page by page: a stale holder must stay refused after a move."""

    verb: ClassVar[Verb] = "admin"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = list[Fenced]
    checked: ClassVar[tuple[Field, ...]] = (AFTER_FENCE, LIMIT)

    after: tuple[str, str] = ("", "")
    limit: int = 1_000

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def named(self, names: Renamer) -> Self:
        names.whole("copy")
        return self

    def check(self, tx: Transaction) -> list[Fenced]:
        return list(islice(tx.fenced(self.after), self.limit))

    def write(self, tx: Transaction, plan: list[Fenced]) -> list[Fenced]:
        del tx
        return plan


def held_leases(tx: Transaction, limit: int) -> list[Lease]:
    """Leases that are held, of any dict or none."""
    return list(islice((held for lease in tx.leases_of() for held in held_of(tx, lease, limit)), limit))
