"""The PostgreSQL store for threads."""

import os
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import psycopg

from holdfast.clock import Clock
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.commands.hints import ALL
from holdfast.stores import AsyncExecutor, AsyncStore, Executor, Guarantees
from holdfast.stores.driver_connections import toolkit_of
from holdfast.stores.networked import NetworkedStore
from holdfast.stores.postgres import schema
from holdfast.stores.postgres._async.caller_transaction import within as within_async
from holdfast.stores.postgres._sync.asking import execute, wait
from holdfast.stores.postgres._sync.caller_transaction import within
from holdfast.stores.postgres._sync.steps import carry_out
from holdfast.stores.postgres.address import Address, parse
from holdfast.stores.postgres.caller import Caller
from holdfast.stores.postgres.calls import Calls
from holdfast.stores.postgres.failures import refuse_if_moved
from holdfast.stores.postgres.listening import Listener
from holdfast.stores.postgres.maintenance import MIGRATE_S, administering
from holdfast.stores.postgres.renewals import PostgresRenewer
from holdfast.stores.postgres.server_info import guarantees_of
from holdfast.stores.undo_cancelled import finish_taking_back
from holdfast.stores.waiting.waiters import Mark

R = TypeVar("R")

PRUNE_EVERY = 500
"""So many commands of this process that write, and it prunes a little."""

_left_behind: list[object] = []
"""What a forked child inherited: forgetting it would close the parent's connections."""


class PostgresStore(NetworkedStore):
    """A store in a schema of a PostgreSQL database, 14 or newer, that threads, tasks, processes and hosts share."""

    def __init__(self, url: str, *, limits: Limits = Limits(), clock: Clock | None = None, create: bool = True) -> None:
        self.address: Address = parse(url)
        super().__init__(self.address.url, limits, clock)
        self.calls: Calls = Calls(self.address.schema)
        self.guarantees: Guarantees
        self.database: str
        self.guarantees, self.database = open_schema(self.address, create=create)
        self._written = 0
        self._begin()

    def _begin(self) -> None:
        """Start without a connection, in a forked child again: what it inherited is the parent's, and is neither used nor closed."""
        self._process = os.getpid()
        self._listener = Listener(self.address, self.waiters)
        self.waiters.announce = self._hear_of
        self.caller: Caller = Caller(self.address, self.calls, self.address.pool)

    def _begin_in_child(self) -> None:
        _left_behind.append((self._listener, self.caller))
        self.waiters.reset()
        self._begin()

    def execute(self, command: Command[R]) -> R:
        return execute(self, command)

    def within(self, connection: "psycopg.Connection[Any]") -> Executor:
        return within(connection, self.database, self.address.schema, self.limits)

    def within_async(self, connection: Any) -> AsyncExecutor:
        """For tasks, what executes in the transaction of a connection of psycopg or asyncpg to the same database."""
        if toolkit_of(connection) == "asyncpg":
            from holdfast.stores.postgres.on_asyncpg import AsyncpgTransaction  # noqa: PLC0415 - it imports asyncpg, which only its users have

            return AsyncpgTransaction(connection, self.database, self.address.schema, self.limits)
        return within_async(connection, self.database, self.address.schema, self.limits)

    def refuse_if_closed(self) -> None:
        super().refuse_if_closed()
        if self._process != os.getpid():
            self._begin_in_child()

    def is_time_to_prune(self) -> bool:
        """Count one more command that wrote; whether a little is to be pruned after it."""
        self._written += 1
        return self._written % PRUNE_EVERY == 0

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        wait(self, mark, timeout_s, due_in_s, poll_s)

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

    def for_tasks(self) -> AsyncStore:
        from holdfast.stores.postgres.tasks import AsyncPostgresStore  # noqa: PLC0415 - who has no tasks needs no asyncio

        return AsyncPostgresStore(self)

    def for_renewals(self) -> PostgresRenewer:
        return PostgresRenewer(self.address, self.calls)

    def close(self) -> None:
        if self.closing.is_set():
            return
        finish_taking_back(self)
        self.closing.set()
        self.waiters.close()
        if self._process == os.getpid():
            self._listener.close()
            self.caller.pool.close()


class Opened(NamedTuple):
    """What is found out about a server when a store is opened."""

    guarantees: Guarantees
    database: str


def open_schema(address: Address, *, create: bool = True) -> Opened:
    """See to it that the schema is there, and look at the server; raises what tells the caller why not."""
    with administering(address) as session:
        if not create:
            schema.refuse_if_missing(session, address.schema, address.where)
        if schema.is_behind(session, address.schema):
            session.answer_s = MIGRATE_S
            schema.migrate(session, address.schema)
        refuse_if_moved((session.ask(Calls(address.schema).moved) or None,), address.where)
        return Opened(guarantees_of(session), session.info.dbname)


def prune_functions_at(url: str) -> int:
    """Remove the functions of other releases from the schema; how many there were."""
    address = parse(url)
    with administering(address) as session, session.cursor() as cursor, session.transaction():
        return carry_out(schema.prune_functions(address.schema), cursor)
