"""Commands inside a transaction of the caller's own asyncpg connection; they commit or roll back with it.

A command is one call of the general function, with text parameters only: asyncpg encodes others as the codecs of its connection say,
and those are the caller's.
"""

from contextlib import suppress
from typing import Any, TypeVar

import asyncpg
import psycopg
from psycopg import errors

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.stores.postgres.calls import answer, calls_of
from holdfast.stores.postgres.failures import UNDEFINED, Failure, meaning, raised, refuse_if_moved
from holdfast.stores.postgres.statements import Call, as_sent, numbered
from holdfast.stores.retrying import Lost

R = TypeVar("R")

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
MISSING = (*UNDEFINED, errors.UndefinedFunction, errors.InvalidSchemaName)
"""What a command meets in a database that has no such store."""


class AsyncpgTransaction:
    """Executes commands in the open transaction of a connection, and never commits it; without one, each is committed by itself."""

    def __init__(self, connection: Any, database: str, schema: str, limits: Limits) -> None:
        self._connection = connection
        self._database = database
        self._calls = calls_of(schema)
        self._limits = limits

    async def execute(self, command: Command[R]) -> R:
        command.measure(self._limits)
        try:
            return answer(command, await self._ask(self._calls.text_call(command, command.id)))
        except psycopg.DataError as error:
            raise raised(error, self._where) from error
        except FAILURES as error:
            failure = failure_of(error)
            if issubclass(failure.kind, MISSING):
                await self._explain_missing()
            raise self._told(failure) from error

    async def _ask(self, call: Call) -> str:
        """Make the call, in a savepoint where a transaction is open: so a refusal undoes no more than itself."""
        if not self._connection.is_in_transaction():
            return await self._fetch(call)
        await self._connection.execute("savepoint holdfast")
        try:
            found = await self._fetch(call)
        except BaseException:
            with suppress(*FAILURES):  # The connection may be lost: the first error says more.
                await self._connection.execute("rollback to savepoint holdfast; release savepoint holdfast")
            raise
        await self._connection.execute("release savepoint holdfast")
        return found

    async def _fetch(self, call: Call) -> str:
        database, text = await self._connection.fetchrow(
            numbered(call.statement).decode(), self._database, *((as_sent(parameter) or b"").decode() for parameter in call.parameters)
        )
        if text is None:
            raise self._other(database)
        return str(text)

    async def _explain_missing(self) -> None:
        """Raise where the connection leads to another database, or the store was moved away."""
        with suppress(*FAILURES):
            database = await self._connection.fetchval("select current_database()")
            if database != self._database:
                raise self._other(database)
            refuse_if_moved((await self._connection.fetchval(numbered(self._calls.moved.statement).decode()),), self._where)

    def _told(self, failure: Failure) -> HoldfastError | ValueError:
        told = meaning(failure, self._where)
        if isinstance(told, Lost):
            return StoreUnavailable(f"{told}; nothing of this command was written: try it again, or roll back")
        return told

    def _other(self, database: str) -> ValueError:
        return ValueError(f"the connection is to the database {database!r}, but the store is in {self._database!r}: connect to that one")

    @property
    def _where(self) -> str:
        return f"the transaction on the database {self._database!r}"


def failure_of(error: Exception) -> Failure:
    """An error of asyncpg, under the classes of psycopg."""
    if not isinstance(error, asyncpg.PostgresError) or not error.sqlstate:
        return Failure(psycopg.InterfaceError, "", str(error), "")
    try:
        kind = errors.lookup(error.sqlstate)
    except KeyError:
        kind = psycopg.DatabaseError
    return Failure(kind, error.sqlstate, error.message or str(error), error.detail or "")
