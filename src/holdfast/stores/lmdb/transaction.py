"""One atomic step on an LMDB environment."""

from typing import Any

from holdfast.commands import Command, run
from holdfast.commands.command import by_halves
from holdfast.policy_records import Kind
from holdfast.stores.lmdb.browsing import Browsing
from holdfast.stores.lmdb.copying import Copies
from holdfast.stores.lmdb.fast import Fast


class LmdbTransaction(Fast, Browsing, Copies):
    """What commands ask for, in LMDB's tables; one for each batch of commands."""

    def execute(self, command: Command[Any]) -> Any:
        """Answer the command; what it writes is part of the open transaction."""
        return run(self, command, _carry_out)

    def clear(self, kind: Kind, name: str, *, drop: bool) -> int:
        if drop:
            self._drop_settings(kind, name)
        return self._clear_queue(name) if kind == "queue" else self._clear_dict(name)

    def end(self) -> None:
        """Let go of LMDB's transaction: errors may keep this one alive, and a forked child could then not open the environment."""
        del self.txn


def _carry_out(tx: LmdbTransaction, command: Command[Any]) -> Any:
    answer = tx.fast(command)
    if answer is not None:
        return answer
    tx.reserved.clear()
    return by_halves(tx, command)
