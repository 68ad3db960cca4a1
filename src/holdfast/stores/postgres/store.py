"""The PostgreSQL store for threads."""

import os
import threading
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from holdfast.clock import Clock
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed, HoldfastError, LeaseHeld
from holdfast.stores import AsyncStore, Executor, Guarantees
from holdfast.stores.cancelled import finish_taking_back
from holdfast.stores.postgres import schema
from holdfast.stores.postgres.address import Address, parse
from holdfast.stores.postgres.borrowed import BorrowedPostgresStore
from holdfast.stores.postgres.calls import Asking, Calls, answer, answer_held
from holdfast.stores.postgres.failures import UNDEFINED, not_connected, raised, refuse_if_moved
from holdfast.stores.postgres.listening import Listener
from holdfast.stores.postgres.server import guarantees_of
from holdfast.stores.postgres.sessions import Session, Sessions, prepare
from holdfast.stores.postgres.statements import Call
from holdfast.stores.postgres.within import CallersTransaction, check_connection
from holdfast.stores.renewals import DirectRenewer
from holdfast.stores.retrying import Lost, Tries, retry
from holdfast.stores.waiting import ALL, Mark, Waiters, waiters_for

R = TypeVar("R")

Connection = psycopg.Connection[Any]

CONNECT_S = 5.0
"""How long one try waits for a connection of the pool."""

ANNOUNCE_S = 1.0
"""The longest that a first wait takes to announce itself; where that is not enough, waiting is polling."""

PRUNE_EVERY = 500
"""So many commands of this process that write, and it prunes a little."""

# Autocommit: one statement is one transaction, and one round trip. Nothing is prepared unless the session is ours alone: see sessions.py.
SESSION: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}


_left_behind: list[object] = []
"""What a forked child inherited: forgetting it would close the parent's connections."""


class PostgresStore:
    """A store in a schema of a PostgreSQL database, 14 or newer, that threads, tasks, processes and hosts share."""

    def __init__(self, url: str, *, limits: Limits = Limits(), clock: Clock | None = None, create: bool = True) -> None:
        self.address: Address = parse(url)
        self.url: str = self.address.url
        self.limits = limits
        self.calls: Calls = Calls(self.address.schema)
        with open_connection(self.address, create=create) as connection:
            self.guarantees: Guarantees = guarantees_of(connection)
            self.database: str = connection.info.dbname
        self.waiters: Waiters = Waiters() if clock is None else waiters_for(clock)
        self.clock = clock
        self._closing = threading.Event()
        self._written = 0
        self._begin()

    def _begin(self) -> None:
        """Start without a connection, in a forked child again: what it inherited is the parent's, and is neither used nor closed."""
        self._process = os.getpid()
        self._listener = Listener(self._connect, self.address.schema, self.waiters)
        self.waiters.announce = self._hear_of
        pool = ConnectionPool(
            self.address.conninfo,
            connection_class=Session,
            kwargs=SESSION,
            min_size=0,
            max_size=self.address.pool,
            timeout=CONNECT_S,
            configure=partial(prepare, schema=self.address.schema),
            open=True,
        )
        self._sessions = Sessions(pool)

    def _begin_in_child(self) -> None:
        _left_behind.append((self._listener, self._sessions))
        self.waiters.reset()
        self._begin()

    def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        self.refuse_if_closed()
        asking = Asking(self.calls, command)
        try:
            text = retry(lambda: self._ask(asking.call()), Tries(), self._closing.wait)
        except LeaseHeld as held:
            return answer_held(command, held)
        if not command.reads_only and self.is_time_to_prune():
            # The command was applied, so nothing that happens here is the caller's: somebody prunes again soon.
            with suppress(Lost, HoldfastError):
                self._ask(self.calls.prune)
        return answer(command, text)

    def _ask(self, call: Call) -> str:
        """Make the call once, on a connection of the pool."""
        try:
            connection = self._sessions.take()
        except PoolClosed:
            raise Closed("The store was closed; open it again.") from None
        except PoolTimeout:
            raise Lost(f"{self.address.where}: no connection in {CONNECT_S:g} s", maybe_applied=False) from None
        try:
            return connection.ask(call)
        except psycopg.Error as error:
            told = raised(error, self.address.where)
            if isinstance(error, UNDEFINED):
                refuse_if_moved(connection.execute(self.calls.moved.statement, ()).fetchone(), self.address.where)
            if connection.closed:
                # The others are as old, and were probably cut as well.
                self._sessions.drain()
            raise told from error
        finally:
            self._sessions.give_back(connection)

    def within(self, connection: Connection) -> Executor:
        """What executes commands in the connection's transaction, on the data of this store."""
        check_connection(connection, psycopg.Connection, self.database)
        return CallersTransaction(BorrowedPostgresStore(connection, limits=self.limits, name=self.address.schema, is_ready=True))

    def refuse_if_closed(self) -> None:
        """Raise `Closed` after `close`."""
        if self._closing.is_set():
            raise Closed("The store was closed; open it again.")
        if self._process != os.getpid():
            self._begin_in_child()

    def is_time_to_prune(self) -> bool:
        """Count one more command that wrote; whether a little is to be pruned after it."""
        self._written += 1
        return self._written % PRUNE_EVERY == 0

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        announced = self.listen(mark.topic)
        if announced is None:
            self.waiters.wait(mark, timeout_s, due_in_s, poll_s)
        elif timeout_s > 0:
            # What came before told nobody, so the caller asks once more.
            futures.wait([announced], ANNOUNCE_S)

    def listen(self, topic: str) -> Future[None] | None:
        """Hear of the topic; None where that is so already, else what is done once it is."""
        if self._process != os.getpid():
            self._begin_in_child()
        return self._listener.want(topic)

    def _hear_of(self, topic: str) -> Future[None] | None:
        announced = self.listen(topic)
        if announced is not None:
            # What came before told nobody, so all ask once more.
            announced.add_done_callback(lambda _: self.waiters.hint(topic, ALL))
        return announced

    def wall_offset_us(self) -> int:
        # The server's clock is the one that people know.
        return 0 if self.clock is None else self.clock.wall_offset_us()

    def for_tasks(self) -> AsyncStore:
        from holdfast.stores.postgres.tasks import AsyncPostgresStore  # noqa: PLC0415 - who has no tasks needs no asyncio

        return AsyncPostgresStore(self)

    def for_renewals(self) -> DirectRenewer:
        return DirectRenewer(self)

    def close(self) -> None:
        if self._closing.is_set():
            return
        finish_taking_back(self)
        self._closing.set()
        self.waiters.close()
        if self._process == os.getpid():
            self._listener.close()
            self._sessions.close()

    def _connect(self) -> Connection:
        return psycopg.connect(self.address.conninfo, **SESSION)


def open_connection(address: Address, *, create: bool = True) -> Connection:
    """Connect and see to it that the schema is there; raises what tells the caller why not."""
    try:
        connection: Connection = psycopg.connect(address.conninfo, **SESSION)
    except psycopg.Error as error:
        raise not_connected(error, address.where) from None
    try:
        if not create:
            schema.refuse_if_missing(connection, address.schema, address.where)
        schema.migrate(connection, address.schema)
        refuse_if_moved(connection.execute(Calls(address.schema).moved.statement, ()).fetchone(), address.where)
    except psycopg.Error as error:
        connection.close()
        told = raised(error, address.where)
        raise (not_connected(error, address.where) if isinstance(told, Lost) else told) from error
    except BaseException:
        connection.close()
        raise
    return connection
