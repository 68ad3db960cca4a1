"""Connections of a store's pool: what each call costs its client, and whether the server may prepare it."""

from functools import cached_property
from typing import Any

import psycopg

from holdfast.stores.postgres.statements import Call

Row = tuple[Any, ...]

KEPT_CHARS = 65_536

PROCESS = b"select pg_backend_pid()"


class Session(psycopg.Connection[Any]):
    """A connection with one cursor for all its calls: what that found out about their parameters it need not find out again."""

    @cached_property
    def cursor_of_calls(self) -> psycopg.Cursor[Any]:
        return self.cursor()

    def ask(self, call: Call) -> Row | None:
        row = self.cursor_of_calls.execute(call.statement, call.parameters).fetchone()
        if is_large(call, row):
            # The cursor would keep both.
            del self.cursor_of_calls
        return row


class AsyncSession(psycopg.AsyncConnection[Any]):
    """The same, for tasks."""

    @cached_property
    def cursor_of_calls(self) -> psycopg.AsyncCursor[Any]:
        return self.cursor()

    async def ask(self, call: Call) -> Row | None:
        cursor = await self.cursor_of_calls.execute(call.statement, call.parameters)
        row = await cursor.fetchone()
        if is_large(call, row):
            del self.cursor_of_calls
        return row


def is_large(call: Call, row: Row | None) -> bool:
    """Whether a call or its answer is too much to be kept until the next."""
    texts = (part for part in (*call.parameters, *(row or ())) if isinstance(part, str))
    return sum(map(len, texts)) > KEPT_CHARS


def prepare(connection: Session) -> None:
    """Have statements prepared on a new connection, where that is safe."""
    if has_session(connection, connection.execute(PROCESS).fetchone()):
        connection.prepare_threshold = 0


async def prepare_async(connection: AsyncSession) -> None:
    """Have statements prepared on a new connection, where that is safe."""
    cursor = await connection.execute(PROCESS)
    if has_session(connection, await cursor.fetchone()):
        connection.prepare_threshold = 0


def has_session(connection: psycopg.BaseConnection[Any], row: Row | None) -> bool:
    """Whether the connection has a session of its own, of which this is the process.

    A pooler that lends sessions for a transaction each does not know whose process it will be, and told of another: there the next
    statement may meet a session in which nothing, or something else, was prepared under its name.
    """
    return row is not None and row[0] == connection.info.backend_pid
