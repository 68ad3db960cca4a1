"""Commands inside a transaction of the caller's own psycopg connection: they commit or vanish with the caller's work.

A store on a borrowed connection commits what it does while that is idle. Here a command is as a statement of the caller's own: where
psycopg would begin a transaction for that, it is the first of one.
"""

from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.commands import Command
from holdfast.stores.postgres.on_connection import AsyncBorrowedPostgresStore, BorrowedPostgresStore

R = TypeVar("R")

Connection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

BEGIN = b"select"
"""Nothing, and psycopg begins a transaction for it."""


class CallersTransaction:
    """Executes commands in the open transaction of a connection, or in one that it begins, and never commits it."""

    def __init__(self, borrowed: BorrowedPostgresStore) -> None:
        self._borrowed = borrowed

    def execute(self, command: Command[R]) -> R:
        connection = self._borrowed.connection
        if not begins_one(connection):
            return self._borrowed.execute(command)
        connection.execute(BEGIN)
        try:
            return self._borrowed.execute(command)
        except BaseException:
            connection.rollback()
            raise


class AsyncCallersTransaction:
    """The same, for tasks."""

    def __init__(self, borrowed: AsyncBorrowedPostgresStore) -> None:
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


def begins_one(connection: Connection) -> bool:
    """Whether a statement of the caller's would begin a transaction now."""
    return not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


def check_connection(connection: Connection, kind: type, database: str) -> None:
    """Refuse what is no connection to the store's database, as far as the connection knows."""
    if not isinstance(connection, kind):
        given = f"{type(connection).__module__}.{type(connection).__name__}"
        raise TypeError(f"a connection to this store is a psycopg.{kind.__name__} here, not {given}")
    if connection.info.dbname != database:
        raise ValueError(
            f"the connection is to the database {connection.info.dbname!r}, and the store in {database!r}: connect to that one"
        )
