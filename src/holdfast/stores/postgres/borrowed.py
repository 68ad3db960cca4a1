"""A store on the caller's own psycopg connection: what it does commits or vanishes with the caller's work.

`connection.transaction()` is both things that are wanted: in an open transaction a savepoint, so that a refusal undoes no more than itself,
and on an idle connection a transaction of its own. Notifications leave with the commit, so nobody is woken before it.
"""

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from holdfast.codec import Limits
from holdfast.commands import Acquire, Command, Release, Renew
from holdfast.errors import LeaseHeld, StoreError, StoreUnavailable
from holdfast.stores import AsyncStore, Guarantees
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

_ready: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The schemas that are known to be there, by connection: a store on one is often made for a single command."""


class BorrowedPostgresStore:
    """Commands inside the open transaction of a connection, which they never commit; on an idle connection each commits for itself."""

    def __init__(
        self, connection: psycopg.Connection[Any], *, limits: Limits = Limits(), name: str = SCHEMA, is_ready: bool = False
    ) -> None:
        self.connection = connection
        self.limits = limits
        self.schema = name
        self.url: str
        self.guarantees: Guarantees
        self.url, self.guarantees = described(connection, name)
        self.waiters: Waiters = Waiters()
        self._calls = Calls(name)
        self._ready = {name} if is_ready else _ready.setdefault(connection, set())

    def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        try:
            with self.connection.transaction():
                self._prepare()
                call = self._calls.call(command, command.id, again=bool(command.id))
                with self.connection.cursor(row_factory=tuple_row) as cursor:
                    row = cursor.execute(call.statement, call.parameters, prepare=False).fetchone()
                found = answer(command, row[0] if row else "")
                if is_in_vain(command, found):
                    raise psycopg.Rollback
            if self.connection.info.transaction_status == TransactionStatus.IDLE:
                self._ready.add(self.schema)
        except psycopg.Error as error:
            return answer_refused(command, error, self.url)
        return found

    def _prepare(self) -> None:
        """Make the tables; they may vanish with the caller's transaction, so they are remembered only once we committed them."""
        if self.schema not in self._ready:
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
        self.url: str
        self.guarantees: Guarantees
        self.url, self.guarantees = described(connection, name)
        self.waiters: Waiters = Waiters()
        self._calls = Calls(name)
        self._ready = {name} if is_ready else _ready.setdefault(connection, set())

    async def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        try:
            async with self.connection.transaction():
                await self._prepare()
                call = self._calls.call(command, command.id, again=bool(command.id))
                async with self.connection.cursor(row_factory=tuple_row) as cursor:
                    row = await (await cursor.execute(call.statement, call.parameters, prepare=False)).fetchone()
                found = answer(command, row[0] if row else "")
                if is_in_vain(command, found):
                    raise psycopg.Rollback
            if self.connection.info.transaction_status == TransactionStatus.IDLE:
                self._ready.add(self.schema)
        except psycopg.Error as error:
            return answer_refused(command, error, self.url)
        return found

    async def _prepare(self) -> None:
        if self.schema not in self._ready:
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


def is_in_vain(command: Command[Any], found: Any) -> bool:
    """Whether nothing came of a command on leases: undone, it leaves no lock for which a holder would wait as long as for the caller."""
    if command.id:
        # Its answer is to be remembered.
        return False
    if isinstance(command, Acquire):
        return bool(found.lease.lease_id != command.lease_id)
    if isinstance(command, Renew):
        return not any(found.leases)
    return isinstance(command, Release) and not any(found.held)


def answer_refused(command: Command[R], error: psycopg.Error, url: str) -> R:
    """Raise what the error means; what somebody else has in an open transaction is an answer."""
    told = raised(error, f"the transaction on {url}")
    if isinstance(told, LeaseHeld):
        return answer_held(command, told)
    if isinstance(told, Lost):
        told = StoreUnavailable(f"{told}; of this command nothing was written: try it again, or roll back")
    raise told from error


def described(connection: Any, schema: str) -> tuple[str, Guarantees]:
    """Where the connection leads, without the password, and what is promised there."""
    info = connection.info
    try:
        url = f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}?schema={schema}"
        return url, guarantees_of_borrowed(info.server_version)
    except psycopg.OperationalError as error:
        raise StoreUnavailable("the connection to PostgreSQL was closed or lost: give another") from error
