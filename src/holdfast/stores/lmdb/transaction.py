"""One atomic step on an LMDB environment."""

from collections.abc import Callable, Sequence
from heapq import nsmallest
from itertools import groupby
from typing import Any

from holdfast.commands import Command, Together, run
from holdfast.commands.checkpoint import carry_out_checkpoint
from holdfast.commands.command import by_halves
from holdfast.commands.transaction import Outdated, Record
from holdfast.records import Entry, Lease, Message
from holdfast.records.policies import Kind, Lane, Settings
from holdfast.records.shares import Share, Shared
from holdfast.stores.lmdb.browsing import Browsing
from holdfast.stores.lmdb.copying import Copies
from holdfast.stores.lmdb.fast import Fast


class LmdbTransaction(Fast, Browsing, Copies):
    """What commands ask for, in LMDB's tables; one for each batch of commands."""

    def execute(self, command: Command[Any]) -> Any:
        """Answer the command; what it writes is part of the open transaction."""
        return run(self, command, _carry_out)

    def save(self, records: Sequence[Record]) -> None:
        for kind, same in groupby(records, type):
            SAVERS[kind](self, list(same))

    def clear(self, kind: Kind, name: str, *, drop: bool) -> int:
        if drop:
            self._drop_settings(kind, name)
        return self._clear_queue(name) if kind == "queue" else self._clear_dict(name)

    def outdated(self, limit: int, *, done: bool) -> Outdated:
        return Outdated(self._stale_entries(limit), nsmallest(limit, self._histories()) if done else [])

    def end(self) -> None:
        """Let go of LMDB's transaction: errors may keep this one alive, and a forked child could then not open the environment."""
        del self.txn


SAVERS: dict[type[Record], Callable[[LmdbTransaction, Sequence[Any]], None]] = {
    Message: LmdbTransaction.save_messages,
    Settings: LmdbTransaction.save_settings,
    Lane: LmdbTransaction.save_lanes,
    Entry: LmdbTransaction.save_entries,
    Lease: LmdbTransaction.save_leases,
    Shared: LmdbTransaction.save_leases,
    Share: LmdbTransaction.save_shares,
}


def _carry_out(tx: LmdbTransaction, command: Command[Any]) -> Any:
    if type(command) is Together:
        answer: Any = carry_out_checkpoint(tx, command) if command.plain() else None
    else:
        answer = tx.fast(command)
    if answer is not None:
        return answer
    tx.reserved.clear()
    return by_halves(tx, command)
