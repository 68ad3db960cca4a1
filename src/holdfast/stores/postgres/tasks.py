"""The PostgreSQL store for tasks: connections belong to the event loop that uses them."""

import asyncio
import weakref
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed, HoldfastError, LeaseHeld
from holdfast.stores import AsyncExecutor, Guarantees
from holdfast.stores.cancelled import take_back
from holdfast.stores.postgres.borrowed import AsyncBorrowedPostgresStore
from holdfast.stores.postgres.calls import Asking, answer, answer_held
from holdfast.stores.postgres.failures import UNDEFINED, raised, refuse_if_moved
from holdfast.stores.postgres.sessions import AsyncSession, prepare_async
from holdfast.stores.postgres.statements import Call
from holdfast.stores.postgres.store import ANNOUNCE_S, CONNECT_S, SESSION, PostgresStore
from holdfast.stores.postgres.within import AsyncCallersTransaction, check_connection
from holdfast.stores.retrying import Lost, Tries, retry_async
from holdfast.stores.waiting import Mark, Waiters

R = TypeVar("R")

AsyncConnection = psycopg.AsyncConnection[Any]


AsyncPool = AsyncConnectionPool[AsyncSession]


class AsyncPostgresStore:
    """The async face of a PostgreSQL store."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.guarantees: Guarantees = store.guarantees
        self.waiters: Waiters = store.waiters
        # One for each event loop that uses the store; a loop that is gone takes its own with it.
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool] = weakref.WeakKeyDictionary()

    async def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        self.store.refuse_if_closed()
        asking = Asking(self.store.calls, command)
        try:
            text = await retry_async(lambda: self._ask(asking.call()), Tries())
        except LeaseHeld as held:
            return answer_held(command, held)
        except asyncio.CancelledError:
            take_back(self.store, asking.named())
            raise
        if not command.reads_only and self.store.is_time_to_prune():
            # As for threads: the command was applied.
            with suppress(Lost, HoldfastError):
                await self._ask(self.store.calls.prune)
        return answer(command, text)

    async def _ask(self, call: Call) -> str:
        """Make the call once, on a connection of this loop's pool."""
        where = self.store.address.where
        pool = await self._pool()
        try:
            connection = await pool.getconn()
        except PoolClosed:
            raise Closed("The store was closed; open it again.") from None
        except PoolTimeout:
            raise Lost(f"{where}: no connection in {CONNECT_S:g} s", maybe_applied=False) from None
        try:
            return await connection.ask(call)
        except psycopg.Error as error:
            told = raised(error, where)
            if isinstance(error, UNDEFINED):
                cursor = await connection.execute(self.store.calls.moved.statement, ())
                refuse_if_moved(await cursor.fetchone(), where)
            if connection.closed:
                # The others are as old, and were probably cut as well.
                await pool.drain()
            raise told from error
        finally:
            await pool.putconn(connection)

    def within(self, connection: AsyncConnection) -> AsyncExecutor:
        """What executes commands in the connection's transaction, on the data of this store."""
        check_connection(connection, psycopg.AsyncConnection, self.store.database)
        borrowed = AsyncBorrowedPostgresStore(connection, limits=self.limits, name=self.store.address.schema, is_ready=True)
        return AsyncCallersTransaction(borrowed)

    async def _pool(self) -> AsyncPool:
        self.store.refuse_if_closed()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            address = self.store.address
            pool = AsyncConnectionPool(
                address.conninfo,
                connection_class=AsyncSession,
                kwargs=SESSION,
                min_size=0,
                max_size=address.pool,
                timeout=CONNECT_S,
                configure=partial(prepare_async, schema=address.schema),
                open=False,
            )
            self._pools[loop] = pool
            await pool.open()
        return pool

    def mark(self, topic: str) -> Mark:
        return self.store.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        announced = self.store.listen(mark.topic)
        if announced is None:
            await self.store.waiters.wait_async(mark, timeout_s, due_in_s, poll_s)
        elif timeout_s > 0:
            # What came before told nobody, so the caller asks once more.
            await asyncio.wait([asyncio.wrap_future(announced)], timeout=ANNOUNCE_S)

    def wall_offset_us(self) -> int:
        return self.store.wall_offset_us()

    async def aclose(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()
        await asyncio.to_thread(self.store.close)
