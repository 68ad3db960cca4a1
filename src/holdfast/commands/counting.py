"""Sizes and ages of all queues."""

from typing import Any, ClassVar, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch
from holdfast.codec.fields import AFTER_NAME, LIMIT, NAME_PREFIX, Field, check_fields
from holdfast.commands.command import Command
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.stats import Stats
from holdfast.commands.transaction import Transaction


class QueueCount(Struct, frozen=True, gc=False):
    """One queue, and what is in it."""

    name: str
    stats: Stats


class Counted(Struct, frozen=True, gc=False, omit_defaults=True):
    """Queues in order of their names, all at one moment."""

    queues: list[QueueCount]
    more: bool = False


class Counts(Command[Counted], frozen=True):
    """Sizes, ages and holders of the queues whose names begin with a prefix, page by page; see `Count`."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Counted
    checked: ClassVar[tuple[Field, ...]] = (NAME_PREFIX, AFTER_NAME, LIMIT)

    prefix: str = ""
    after: str | None = None
    limit: int = 100

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        prefix, after = names.listed("queue", self.prefix, self.after, self.verb, exact=False)
        return renamed(self, prefix=prefix, after=after)

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def check(self, tx: Transaction) -> Counted:
        page = tx.names("queue", self.prefix, self.after, self.limit + 1)
        counts = [QueueCount(one.name, tx.tally(one.name).stats(tx.now)) for one in page[: self.limit]]
        return Counted(counts, len(page) > self.limit)

    def write(self, tx: Transaction, plan: Counted) -> Counted:
        del tx
        return plan
