"""Reading the groups of a queue."""

from typing import Any, ClassVar, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch, check_name
from holdfast.codec.fields import AFTER_NAME, LIMIT, NAME_PREFIX, Field, check_fields
from holdfast.commands.command import Command
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.transaction import Transaction
from holdfast.policy_records import Lane


class Grouped(Struct, frozen=True, gc=False, omit_defaults=True):
    """Groups in order of their names, and the moment."""

    lanes: list[Lane]
    more: bool = False
    now: int = 0


class Groups(Command[Grouped], frozen=True):
    """List the groups of a queue by name, page by page: those with something in line or claimed, or with settings of their own."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Grouped
    checked: ClassVar[tuple[Field, ...]] = (NAME_PREFIX, AFTER_NAME, LIMIT)

    queue: str
    prefix: str = ""
    after: str | None = None
    limit: int = 1_000

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, queue=names.object("queue", self.queue, self.verb))

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def check(self, tx: Transaction) -> Grouped:
        page = tx.find_lanes(self.queue, "name", self.limit + 1, self.prefix, self.after)
        return Grouped(page[: self.limit], len(page) > self.limit, tx.now)

    def write(self, tx: Transaction, plan: Grouped) -> Grouped:
        del tx
        return plan
