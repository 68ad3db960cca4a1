"""Taking a lease from its holder."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Self

from msgspec import Struct

from holdfast.codec import check_name
from holdfast.codec.fields import HELD_TOKEN, REASON, Field, check_fields
from holdfast.commands.argument_checks import check_key
from holdfast.commands.command import Command, Resource
from holdfast.commands.leases import end_leases
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.shares import end_shares
from holdfast.commands.transaction import Transaction
from holdfast.records import Lease
from holdfast.records.shares import Share, Shared

BROKEN: Final = 1_000
"""So many grants of a name with capacity are taken in one step, those that end first; so far one is looked for, too."""


class Broken(Struct, frozen=True, gc=False, omit_defaults=True):
    """The leases that were taken from their holders."""

    leases: list[Lease] = []


class Break(Command[Broken], frozen=True):
    """End a lease that another caller holds, and say why; of a name with capacity, the grant with this token, or all.

    The holder finds it lost at its next renewal or fenced write. The next holder has a higher token, so what is written under
    the old one is refused from then on. With `token`, nothing is ended that was granted later.
    """

    verb: ClassVar[Verb] = "manage"
    answer_type: ClassVar[Any] = Broken
    checked: ClassVar[tuple[Field, ...]] = (REASON, HELD_TOKEN)

    dict: str | None
    key: str
    reason: str
    token: int | None = None

    def __post_init__(self) -> None:
        if self.dict is not None:
            check_name(self.dict, "dict")
        check_key(self.key)
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        name, key = names.lease(self.dict, self.key, self.verb)
        return renamed(self, dict=name, key=key)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("dict", self.dict), False
        yield ("lease", self.dict, self.key), True

    def check(self, tx: Transaction) -> list[Lease] | list[Share]:
        current = tx.leases([(self.dict, self.key)]).get((self.dict, self.key))
        if isinstance(current, Shared):
            grants = tx.find_shares(self.key, "grants", BROKEN, after=tx.now)
            return [share for share in grants if self.token in (None, share.token)]
        is_meant = current is not None and current.held_at(tx.now) and self.token in (None, current.token)
        return [current] if is_meant and current is not None else []

    def write(self, tx: Transaction, plan: list[Lease] | list[Share]) -> Broken:
        leases = [one for one in plan if isinstance(one, Lease)]
        shares = [one for one in plan if isinstance(one, Share)]
        if leases:
            end_leases(tx, leases, "broken", reason=self.reason)
        if shares:
            end_shares(tx, shares, "broken", reason=self.reason)
        return Broken([*leases, *(share.lease for share in shares)])
