"""One atomic step on an LMDB environment."""

from typing import TypeVar

from holdfast.commands import Command, run
from holdfast.stores.lmdb.browsing import Browsing
from holdfast.stores.lmdb.dicts import Dicts
from holdfast.stores.lmdb.messages import Messages

R = TypeVar("R")


class LmdbTransaction(Messages, Browsing, Dicts):
    """What commands ask for, in LMDB's tables; one for each batch of commands."""

    def execute(self, command: Command[R]) -> R:
        """Answer the command; what it writes is part of the open transaction."""
        self.reserved.clear()
        return run(self, command)

    def end(self) -> None:
        """Let go of LMDB's transaction: errors may keep this one alive, and a forked child could then not open the environment."""
        del self.txn
