"""Commands inside a transaction of the caller's own psycopg connection; they commit or roll back with it.

A store on a borrowed connection commits what it does while that is idle. Here a command is as a statement of the caller's own: where
psycopg would begin a transaction for that, it is the first of one.
"""

from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.stores.driver_connections import name_of
from holdfast.stores.postgres._async.on_connection import AsyncBorrowing

R = TypeVar("R")

AsyncConnection = psycopg.AsyncConnection[Any]

BEGIN = b"select"
"""Nothing, and psycopg begins a transaction for it."""


def within(connection: AsyncConnection, database: str, schema: str, limits: Limits) -> "AsyncCallersTransaction":
    """What executes commands on the store of this schema; refuses a connection to another database, as far as the connection knows."""
    if not isinstance(connection, psycopg.AsyncConnection):
        raise TypeError(f"a connection to this store is a psycopg.AsyncConnection here, not {name_of(connection)}")
    if connection.info.dbname != database:
        raise ValueError(
            f"the connection is to the database {connection.info.dbname!r}, but the store is in {database!r}: connect to that one"
        )
    return AsyncCallersTransaction(AsyncBorrowing(connection, limits=limits, name=schema, is_ready=True))


class AsyncCallersTransaction:
    """Executes commands in the open transaction of a connection, or in one that it begins, and never commits it."""

    def __init__(self, borrowed: AsyncBorrowing) -> None:
        self._borrowed = borrowed

    async def execute(self, command: Command[R]) -> R:
        connection = self._borrowed.connection
        if not begins_one(connection):
            return await self._borrowed.execute(command)
        await connection.execute(BEGIN)
        try:
            return await self._borrowed.execute(command)
        except BaseException:
            await connection.rollback()
            raise


def begins_one(connection: AsyncConnection) -> bool:
    """Whether a statement of the caller's would begin a transaction now."""
    return not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
