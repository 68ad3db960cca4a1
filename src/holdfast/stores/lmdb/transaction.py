"""One atomic step on an LMDB environment."""

from typing import Any

from holdfast.commands import Claim, Command, Put, Settle, run
from holdfast.stores.lmdb.browsing import Browsing
from holdfast.stores.lmdb.copying import Copies
from holdfast.stores.lmdb.native import Native


class LmdbTransaction(Native, Browsing, Copies):
    """What commands ask for, in LMDB's tables; one for each batch of commands."""

    def execute(self, command: Command[Any]) -> Any:
        """Answer the command; what it writes is part of the open transaction."""
        native = None if command.id else self._natively(command)
        if native is not None:
            return native
        self.reserved.clear()
        return run(self, command)

    def _natively(self, command: Command[Any]) -> Any:
        if type(command) is Put:
            return self._put(command)
        if type(command) is Claim:
            return self._claim(command)
        return self._settle(command) if type(command) is Settle else None

    def end(self) -> None:
        """Let go of LMDB's transaction: errors may keep this one alive, and a forked child could then not open the environment."""
        del self.txn
