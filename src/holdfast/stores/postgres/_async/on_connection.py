"""A store on the caller's own psycopg connection; its work commits or rolls back with the caller's.

In an open transaction a command runs in a savepoint, so that a refusal undoes no more than itself; on an idle connection it is a
transaction of its own, in one round trip. Notifications leave with the commit, so no one is woken before it.
"""

from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from holdfast.codec import Limits
from holdfast.commands import Acquire, Command, Release, Renew
from holdfast.errors import LeaseHeld, StoreUnavailable
from holdfast.stores import Guarantees
from holdfast.stores.postgres._async.steps import carry_out
from holdfast.stores.postgres.address import SCHEMA
from holdfast.stores.postgres.calls import answer, answer_held, calls_of
from holdfast.stores.postgres.failures import UNDEFINED, raised, refuse_if_moved
from holdfast.stores.postgres.schema import apply
from holdfast.stores.postgres.server_info import guarantees_of_borrowed
from holdfast.stores.postgres.statements import Call
from holdfast.stores.retrying import Lost
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")

AsyncConnection = psycopg.AsyncConnection[Any]

POLL_S = 0.5
"""A borrowed connection does not listen: waiters on it ask again after so long."""

_ready: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The schemas that are known to be there, by connection: a store on one is often made for a single command."""


class AsyncBorrowing:
    """Commands inside the open transaction of a connection, which they never commit; on an idle connection each commits for itself.

    All that a single command does without is made when it is asked for.
    """

    def __init__(self, connection: AsyncConnection, *, limits: Limits = Limits(), name: str = SCHEMA, is_ready: bool = False) -> None:
        if connection.closed:
            raise StoreUnavailable("the connection to PostgreSQL was closed or lost: give another")
        self.connection = connection
        self.limits = limits
        self.schema = name
        self._info = connection.info
        self._calls = calls_of(name)
        self._ready = {name} if is_ready else _ready.setdefault(connection, set())
        self._is_closed = False

    async def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        call = self._calls.call(command, command.id, again=bool(command.id))
        try:
            if self.schema in self._ready and is_idle(self.connection):
                return answer(command, await self._ask_alone(call))
            return await self._execute_within(command, call)
        except psycopg.Error as error:
            if isinstance(error, UNDEFINED):
                async with self.connection.transaction():
                    refuse_if_moved((await self._ask(self._calls.moved),), self.url)
            return answer_refused(command, error, self.url)

    async def _ask_alone(self, call: Call) -> str:
        """Make the call as a transaction of its own: with psycopg's own begin and commit it would be three round trips."""
        connection, commits_each = self.connection, self.connection.autocommit
        if commits_each:
            return await self._ask(call)
        await connection.set_autocommit(True)
        try:
            return await self._ask(call)
        finally:
            if not connection.closed:
                await connection.set_autocommit(commits_each)

    async def _execute_within(self, command: Command[R], call: Call) -> R:
        async with self.connection.transaction():
            await self._prepare()
            found = answer(command, await self._ask(call))
            if is_in_vain(command, found):
                raise psycopg.Rollback
        if is_idle(self.connection):
            self._ready.add(self.schema)
        return found

    async def _ask(self, call: Call) -> str:
        async with psycopg.AsyncCursor(self.connection, row_factory=tuple_row) as cursor:
            await cursor.execute(call.statement, call.parameters)
            row = await cursor.fetchone()
        return row[0] if row else ""

    async def _prepare(self) -> None:
        """Make the tables; they may vanish with the caller's transaction, so they are remembered only once we committed them."""
        if self.schema not in self._ready:
            async with psycopg.AsyncCursor(self.connection, row_factory=tuple_row) as cursor:
                await carry_out(apply(self.schema), cursor)

    @cached_property
    def url(self) -> str:
        """Where the connection leads, without the password."""
        info = self._info
        return f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}?schema={self.schema}"

    @cached_property
    def guarantees(self) -> Guarantees:
        """What is promised there."""
        return guarantees_of_borrowed(self._info.server_version)

    @cached_property
    def waiters(self) -> Waiters:
        """Everyone in this process who waits on it."""
        waiters = Waiters()
        if self._is_closed:
            waiters.close()
        return waiters

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    def wall_offset_us(self) -> int:
        return 0

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self.waiters.wait_async(mark, timeout_s, due_in_s, min(POLL_S, poll_s or POLL_S))

    async def aclose(self) -> None:
        """End waits; the connection stays the caller's."""
        self._is_closed = True
        if "waiters" in self.__dict__:
            self.waiters.close()


def is_idle(connection: AsyncConnection) -> bool:
    """Whether a statement of ours would be a transaction of its own, as the server makes them."""
    is_plain = connection.isolation_level is None and connection.read_only is None and connection.deferrable is None
    info = connection.info
    return is_plain and info.transaction_status == TransactionStatus.IDLE and info.pipeline_status == PipelineStatus.OFF


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
    """Raise what the error means; what another session has in an open transaction is an answer."""
    told = raised(error, f"the transaction on {url}")
    if isinstance(told, LeaseHeld):
        return answer_held(command, told)
    if isinstance(told, Lost):
        told = StoreUnavailable(f"{told}; nothing of this command was written: try it again, or roll back")
    raise told from error
