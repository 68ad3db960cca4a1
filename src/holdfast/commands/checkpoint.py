"""Carries a checkpoint out: one claim is renewed and one entry is changed, both or neither."""

from typing import TYPE_CHECKING, Any, Protocol, cast

from holdfast.commands.dicts import Write
from holdfast.commands.settling import Extend, Held
from holdfast.commands.transaction import Transaction
from holdfast.errors import LeaseLost, Refused
from holdfast.records import Receipt, end_of

if TYPE_CHECKING:
    from holdfast.commands.together import Together


class Renewing(Transaction, Protocol):
    """A transaction that renews a single claim with less than it takes to renew many."""

    def renew_claim(self, receipt: Receipt, until: int, *, progress: bool) -> bool:
        """Give a claim another end if it is still held; with `progress` its failures no longer count."""
        ...


def carry_out_checkpoint(tx: Renewing, command: "Together") -> list[Any] | None:
    """The answer to a step that is `plain()`, or None with nothing done where the full rules must say what is refused first."""
    extend, write = cast("tuple[Extend, Write]", command.commands)
    whole = write.strictly()
    try:
        plan = whole.check(tx)
    except (Refused, LeaseLost):
        return None
    if not tx.renew_claim(extend.receipts[0], end_of(tx.now, extend.lease_s), progress=extend.progress):
        return None
    return [Held([True]), whole.write(tx, plan)]
