"""Reading the groups of a queue."""

from typing import Any, ClassVar, Final, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch, check_name
from holdfast.codec.fields import AFTER_NAME, EXACT, LIMIT, NAME_PREFIX, Field, check_fields
from holdfast.commands.command import Command
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.transaction import Transaction
from holdfast.records.policies import Lane


class Grouped(Struct, frozen=True, gc=False, omit_defaults=True):
    """Groups in order of their names, and the moment."""

    lanes: list[Lane]
    more: bool = False
    now: int = 0
    head: str | None = None
    """Of the group that was asked for as `exact`, the id of the first message in line."""
    ahead: int = 0
    """How many groups are served before that one; no more than 1,001 are counted."""


LANES_COUNTED: Final = 1_001


class Groups(Command[Grouped], frozen=True):
    """List the groups of a queue by name, page by page: those with something in line or claimed, or with settings of their own.

    With `exact`, only the one whose name is the prefix, and what it has to hand out when.
    """

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Grouped
    checked: ClassVar[tuple[Field, ...]] = (NAME_PREFIX, AFTER_NAME, LIMIT, EXACT)

    queue: str
    prefix: str = ""
    after: str | None = None
    limit: int = 1_000
    exact: bool = False

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, queue=names.object("queue", self.queue, self.verb))

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def check(self, tx: Transaction) -> Grouped:
        if self.exact:
            return self._one(tx)
        page = tx.find_lanes(self.queue, "name", self.limit + 1, self.prefix, self.after)
        return Grouped(page[: self.limit], len(page) > self.limit, tx.now)

    def _one(self, tx: Transaction) -> Grouped:
        found = tx.lanes(self.queue, [self.prefix])
        heads = tx.lane_heads(self.queue, {self.prefix: 1}).get(self.prefix) if found else None
        open_ = tx.find_lanes(self.queue, "turn", LANES_COUNTED) if found else []
        ahead = sum(one.order < lane.order for lane in found.values() for one in open_)
        return Grouped([*found.values()], now=tx.now, head=heads[0].id if heads else None, ahead=ahead)

    def write(self, tx: Transaction, plan: Grouped) -> Grouped:
        del tx
        return plan
