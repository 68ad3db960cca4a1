"""Repairing the fences of a dict."""

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Any, ClassVar, Self

from msgspec.structs import replace

from holdfast.codec import Limits, check_batch, check_name
from holdfast.codec.fields import LIMIT, Field, check_fields
from holdfast.commands.command import Command, Resource
from holdfast.commands.dicts import FEW
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.transaction import Transaction


class LowerFences(Command[int], frozen=True):
    """Lower the fences of a dict that stand above the newest token to it; return how many, at most `limit`.

    No write is let in under such a fence, but older versions took any, and a copy brings them along: they shut out every holder. A fence
    that a token of this store has set stays, so no stale holder is let in. Of the tokens given out before only the newest can still write.
    """

    verb: ClassVar[Verb] = "admin"
    answer_type: ClassVar[Any] = int
    checked: ClassVar[tuple[Field, ...]] = (LIMIT,)

    dict: str
    limit: int = 1_000

    def __post_init__(self) -> None:
        check_name(self.dict, "dict")
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, dict=names.object("dict", self.dict, self.verb))

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("dict", self.dict), True

    def check(self, tx: Transaction) -> int:
        # 0 would be no fence; the first token is 1 at least.
        return max(tx.latest(), 1)

    def write(self, tx: Transaction, plan: int) -> int:
        of_dict = takewhile(lambda one: one.dict == self.dict, tx.fenced((self.dict, "")))
        keys = [one.key for one in islice((one for one in of_dict if one.fence > plan), self.limit)]
        for start in range(0, len(keys), FEW):
            few = tx.entries(self.dict, keys[start : start + FEW])
            tx.save([replace(entry, fence=plan) for entry in few.values()])
        return len(keys)
