"""Connections of a store's pool: what each call costs its client, and whether the session is ours to keep something in."""

from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.generators import execute
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg_pool import ConnectionPool

from holdfast.stores.postgres.statements import Call, as_sent, numbered

RENEW_EVERY = 1_000

PROCESS = b"select pg_backend_pid()"

SETTINGS = b"""
select set_config('search_path', quote_ident(%s), false), set_config('client_encoding', 'UTF8', false), set_config('jit', 'off', false),
  set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
  set_config('enable_bitmapscan', 'off', false)
"""
"""What the functions of queues set for themselves elsewhere, at a tenth of what a put costs the server."""


class Prepared:
    """The calls prepared in one session, sent and heard without a cursor: that costs a client twice as much as all it has to do."""

    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[bytes, bytes] = {}

    def ask(self, call: Call) -> PQGen[str]:
        """Make the call; for a connection's `wait`."""
        statement = call.leaner or call.statement
        name = self._names.get(statement)
        if name is None:
            name = b"holdfast_%d" % len(self._names)
            self._pgconn.send_prepare(name, numbered(statement))
            self._check((yield from execute(self._pgconn)), ExecStatus.COMMAND_OK)
            self._names[statement] = name
        self._pgconn.send_query_prepared(name, [as_sent(parameter) for parameter in call.parameters])
        result = self._check((yield from execute(self._pgconn)), ExecStatus.TUPLES_OK)
        return (result.get_value(0, 0) or b"").decode()

    def _check(self, results: list[PGresult], wanted: ExecStatus) -> PGresult:
        result = results[-1]
        if result.status != wanted:
            raise errors.error_from_result(result, "utf-8")
        return result


class Session(psycopg.Connection[Any]):
    """A connection on which calls are made."""

    prepared: Prepared | None = None
    """Where the session is ours."""

    def ask(self, call: Call) -> str:
        if self.prepared is None:
            row = self.execute(call.statement, call.parameters).fetchone()
            return row[0] or "" if row else ""
        with self.lock:
            return self.wait(self.prepared.ask(call))


class Sessions:
    """A pool with the session used last at hand: taking that one costs a fraction of what the pool takes, and one thread needs no other."""

    def __init__(self, pool: ConnectionPool[Session]) -> None:
        self._pool = pool
        # Lists, whose ends are taken and given in one step.
        self._at_hand: list[Session] = []
        self._seekers: list[None] = []
        self._is_closed = False
        self._given_back = 0

    def take(self) -> Session:
        """A session; raises `PoolTimeout` and `PoolClosed` as the pool does."""
        with suppress(IndexError):
            return self._at_hand.pop()
        # Said before another look, so that whoever gives one back now leaves it to the pool, where we wait.
        self._seekers.append(None)
        try:
            with suppress(IndexError):
                return self._at_hand.pop()
            return self._pool.getconn()
        finally:
            self._seekers.pop()

    def give_back(self, session: Session) -> None:
        self._given_back += 1
        is_whole = session.pgconn.transaction_status == TransactionStatus.IDLE
        # Now and then it goes back, for the pool to renew what has grown old.
        if not is_whole or self._at_hand or self._given_back % RENEW_EVERY == 0:
            self._pool.putconn(session)
            return
        self._at_hand.append(session)
        if self._seekers or self._is_closed:
            self._lay_down()

    def drain(self) -> None:
        """Close what is idle, and what is in use once it is given back."""
        self._pool.drain()
        self._lay_down()

    def close(self) -> None:
        self._is_closed = True
        self._lay_down()
        self._pool.close()

    def _lay_down(self) -> None:
        with suppress(IndexError):
            self._pool.putconn(self._at_hand.pop())


class AsyncSession(psycopg.AsyncConnection[Any]):
    """The same, for tasks."""

    prepared: Prepared | None = None

    async def ask(self, call: Call) -> str:
        if self.prepared is None:
            row = await (await self.execute(call.statement, call.parameters)).fetchone()
            return row[0] or "" if row else ""
        async with self.lock:
            return await self.wait(self.prepared.ask(call))


def prepare(connection: Session, schema: str) -> None:
    """Keep our settings and what is prepared in the session of a new connection, where that is safe."""
    if has_session(connection, connection.execute(PROCESS).fetchone()):
        connection.execute(SETTINGS, (schema,))
        connection.prepared = Prepared(connection.pgconn)


async def prepare_async(connection: AsyncSession, schema: str) -> None:
    """Keep our settings and what is prepared in the session of a new connection, where that is safe."""
    cursor = await connection.execute(PROCESS)
    if has_session(connection, await cursor.fetchone()):
        await connection.execute(SETTINGS, (schema,))
        connection.prepared = Prepared(connection.pgconn)


def has_session(connection: psycopg.BaseConnection[Any], row: tuple[Any, ...] | None) -> bool:
    """Whether the connection has a session of its own, of which this is the process.

    A pooler that lends sessions for a transaction each does not know whose process it will be, and told of another: there the next
    statement may meet a session in which nothing, or something else, was prepared under its name.
    """
    return row is not None and row[0] == connection.info.backend_pid
