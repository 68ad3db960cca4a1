"""Listing leases."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch, check_name
from holdfast.codec.fields import AFTER_KEY, LIMIT, PREFIX, Field, check_fields
from holdfast.commands.command import Command
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.shares import HOLDERS, held_of
from holdfast.commands.transaction import Transaction
from holdfast.records import Lease
from holdfast.records.shares import Shared


class Holding(Struct, frozen=True, gc=False, omit_defaults=True):
    """One name or key, and the leases on it that last: one, or of a name with capacity several, or none."""

    key: str
    leases: list[Lease] = []
    """By when they end."""
    capacity: int | None = None
    """None for a plain lease, as are the rest: a store does not know who waits for one."""
    used: int | None = None
    """How much of the capacity is granted, including what has ended until the next caller asks."""
    waiting: int | None = None
    """How many stand in line, counted in the same way."""
    resized: bool = False
    """Whether the capacity was set, and stays while the name is not in use."""


class Listed(Struct, frozen=True, gc=False, omit_defaults=True):
    """Leases in order of their keys, where to go on if there may be more, and the moment."""

    held: list[Holding]
    dict: str | None = None
    after: str | None = None
    now: int = 0


class Leases(Command[Listed], frozen=True):
    """List the leases on keys of a dict, or with no dict on names of their own, by prefix, page by page.

    A page looks at `limit` names. Those whose leases have ended are left out, so it may show fewer, or none, and not be the last. Of names
    with capacity, at most 100 grants are shown for all together, and at least one for each.
    """

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Listed
    checked: ClassVar[tuple[Field, ...]] = (PREFIX, AFTER_KEY, LIMIT)

    dict: str | None = None
    prefix: str = ""
    after: str | None = None
    limit: int = 100

    def __post_init__(self) -> None:
        if self.dict is not None:
            check_name(self.dict, "dict")
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        if self.dict is not None:
            return renamed(self, dict=names.object("dict", self.dict, self.verb))
        prefix, after = names.listed("lease", self.prefix, self.after, self.verb, exact=False)
        return renamed(self, prefix=prefix, after=after)

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def check(self, tx: Transaction) -> Listed:
        page = list(islice(tx.leases_of(self.dict, self.prefix, self.after), self.limit))
        shared = sum(isinstance(lease, Shared) for lease in page)
        held = list(_held(tx, page, max(HOLDERS // max(shared, 1), 1)))
        return Listed(held, self.dict, page[-1].key if len(page) == self.limit else None, tx.now)

    def write(self, tx: Transaction, plan: Listed) -> Listed:
        del tx
        return plan


def _held(tx: Transaction, page: list[Lease], shown: int) -> Iterator[Holding]:
    for lease in page:
        leases = held_of(tx, lease, shown)
        if isinstance(lease, Shared):
            yield Holding(lease.key, leases, lease.capacity, lease.used, lease.waiting, lease.resized)
        elif leases:
            yield Holding(lease.key, leases)
