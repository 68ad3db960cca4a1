"""Commands in the caller's transaction on a file that this process has not opened as a store."""

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.stores import Executor
from holdfast.stores.sqlite.caller_transaction import path_of
from holdfast.stores.sqlite.on_connection import BorrowedStore

R = TypeVar("R")


class EarlyTransaction:
    """Executes commands in the open transaction of a connection, through a store on it that lasts as long as the command."""

    def __init__(self, connection: sqlite3.Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits

    def execute(self, command: Command[R]) -> R:
        store = BorrowedStore(self._connection, limits=self._limits)
        try:
            return store.execute(command)
        finally:
            store.close()


def transaction_on(connection: Any, path: Path, limits: Limits) -> Executor | None:
    """What executes in the transaction of a connection to this file; None if none is open there, or it is to another file."""
    if not connection.in_transaction or not path.exists():
        return None
    found = path_of(connection)
    return EarlyTransaction(connection, limits) if found and path.samefile(found) else None
