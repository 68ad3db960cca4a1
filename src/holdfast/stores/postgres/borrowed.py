"""A store on the caller's own psycopg connection: what it does commits or vanishes with the caller's work.

`connection.transaction()` is both things that are wanted: in an open transaction a savepoint, so that a refusal undoes no more than itself,
and on an idle connection a transaction of its own. Notifications leave with the commit, so nobody is woken before it.
"""

from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import LeaseHeld, StoreError, StoreUnavailable
from holdfast.stores import AsyncStore
from holdfast.stores.postgres import schema
from holdfast.stores.postgres.address import SCHEMA
from holdfast.stores.postgres.calls import Calls, answer, answer_held
from holdfast.stores.postgres.failures import raised
from holdfast.stores.postgres.server import guarantees_of_borrowed
from holdfast.stores.retrying import Lost
from holdfast.stores.waiting import Mark, Waiters

R = TypeVar("R")

POLL_S = 0.5
"""A borrowed connection listens to nobody: who waits on it asks again after so long."""


class BorrowedPostgresStore:
    """Commands inside the open transaction of a connection, which they never commit; on an idle connection each commits for itself."""

    def __init__(
        self, connection: psycopg.Connection[Any], *, limits: Limits = Limits(), name: str = SCHEMA, is_ready: bool = False
    ) -> None:
        self.connection = connection
        self.limits = limits
        self.schema = name
        self.url = url_of(connection, name)
        self.guarantees = guarantees_of_borrowed(connection.info.server_version)
        self.waiters = Waiters()
        self._calls = Calls(name)
        self._is_ready = is_ready

    def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        where = f"the transaction on {self.connection.info.dbname!r}"
        try:
            with self.connection.transaction():
                self._prepare()
                call = self._calls.call(command, command.id, again=bool(command.id))
                with self.connection.cursor(row_factory=tuple_row) as cursor:
                    row = cursor.execute(call.statement, call.parameters, prepare=False).fetchone()
            self._is_ready |= self.connection.info.transaction_status == TransactionStatus.IDLE
        except psycopg.Error as error:
            return answer_refused(command, error, where)
        return answer(command, row[0] if row else "")

    def _prepare(self) -> None:
        """Make the tables; they may vanish with the caller's transaction, so they are remembered only once we committed them."""
        if not self._is_ready:
            with self.connection.cursor(row_factory=tuple_row) as cursor:
                schema.carry_out(schema.apply(self.schema), cursor)

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self.waiters.wait(mark, timeout_s, due_in_s, min(POLL_S, poll_s or POLL_S))

    def wall_offset_us(self) -> int:
        return 0

    def for_tasks(self) -> AsyncStore:
        raise StoreError("this connection is for threads: give an AsyncConnection for tasks, or connect to the database")

    def close(self) -> None:
        """End waits; the connection stays the caller's."""
        self.waiters.close()


class AsyncBorrowedPostgresStore:
    """The same on a connection for tasks."""

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], *, limits: Limits = Limits(), name: str = SCHEMA, is_ready: bool = False
    ) -> None:
        self.connection = connection
        self.limits = limits
        self.schema = name
        self.url = url_of(connection, name)
        self.guarantees = guarantees_of_borrowed(connection.info.server_version)
        self.waiters = Waiters()
        self._calls = Calls(name)
        self._is_ready = is_ready

    async def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        where = f"the transaction on {self.connection.info.dbname!r}"
        try:
            async with self.connection.transaction():
                await self._prepare()
                call = self._calls.call(command, command.id, again=bool(command.id))
                async with self.connection.cursor(row_factory=tuple_row) as cursor:
                    row = await (await cursor.execute(call.statement, call.parameters, prepare=False)).fetchone()
            self._is_ready |= self.connection.info.transaction_status == TransactionStatus.IDLE
        except psycopg.Error as error:
            return answer_refused(command, error, where)
        return answer(command, row[0] if row else "")

    async def _prepare(self) -> None:
        if not self._is_ready:
            async with self.connection.cursor(row_factory=tuple_row) as cursor:
                await schema.carry_out_async(schema.apply(self.schema), cursor)

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self.waiters.wait_async(mark, timeout_s, due_in_s, min(POLL_S, poll_s or POLL_S))

    def wall_offset_us(self) -> int:
        return 0

    async def aclose(self) -> None:
        """End waits; the connection stays the caller's."""
        self.waiters.close()


def answer_refused(command: Command[R], error: psycopg.Error, where: str) -> R:
    """Raise what the error means; what somebody else has in an open transaction is an answer."""
    told = raised(error, where)
    if isinstance(told, LeaseHeld):
        return answer_held(command, told)
    if isinstance(told, Lost):
        told = StoreUnavailable(f"{told}; of this command nothing was written: try it again, or roll back")
    raise told from error


def url_of(connection: Any, schema: str) -> str:
    """Where the connection leads, without the password."""
    info = connection.info
    return f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}?schema={schema}"
