"""Reading leases without changing them."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch, check_name
from holdfast.commands.acquired import Acquired, ends_in_s
from holdfast.commands.argument_checks import check_key
from holdfast.commands.command import Command
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.shares import HOLDERS, seen
from holdfast.commands.transaction import Transaction
from holdfast.records import Lease
from holdfast.records.shares import Shared


class Looked(Struct, frozen=True, gc=False):
    """The lease in force on each key, None where it is not held, and the newest event's number at that moment."""

    leases: list[Acquired | None]
    index: int


class Look(Command[Looked], frozen=True):
    """Who holds the leases on keys of a dict, or with no dict on names of their own; of one with capacity, several holders.

    At most 100 of those are told for all keys together, and at least one for each.
    """

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Looked

    dict: str | None
    keys: Sequence[str]

    def __post_init__(self) -> None:
        if self.dict is not None:
            check_name(self.dict, "dict")
        for key in self.keys:
            check_key(key)

    def named(self, names: Renamer) -> Self:
        # Also where no key is asked for: who may not read the dict is told nothing.
        name = None if self.dict is None else names.object("dict", self.dict, self.verb)
        keys = [names.lease(self.dict, key, self.verb)[1] for key in self.keys]
        return renamed(self, dict=name, keys=self.keys if keys == list(self.keys) else keys)

    def measure(self, limits: Limits) -> int:
        return check_batch(len(self.keys), 0, limits)

    def check(self, tx: Transaction) -> Looked:
        found = tx.leases([(self.dict, key) for key in self.keys])
        leases = [found.get((self.dict, key)) for key in self.keys]
        shown = max(HOLDERS // max(len(leases), 1), 1)
        return Looked([_seen(tx, lease, shown) for lease in leases], tx.latest())

    def write(self, tx: Transaction, plan: Looked) -> Looked:
        del tx
        return plan


def _seen(tx: Transaction, lease: Lease | None, shown: int) -> Acquired | None:
    if isinstance(lease, Shared):
        return seen(tx, lease, shown)
    return Acquired(lease, ends_in_s(tx.now, lease.until)) if lease is not None and lease.held_at(tx.now) else None
