"""What a lease needs to know of the caller's connections."""

from collections.abc import Callable
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, Self, TypeVar

from holdfast.client import ControlPlaneClient
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.connect import connect
from holdfast.errors import StoreError
from holdfast.holding.keepalive import Keepalive

R = TypeVar("R")

IDLE = 0
"""What psycopg calls a connection without a transaction."""


def in_transaction(connection: Any) -> bool:
    """Whether the caller has begun a transaction on the connection, of `sqlite3` or psycopg."""
    if hasattr(connection, "in_transaction"):
        return bool(connection.in_transaction)
    return bool(connection.info.transaction_status != IDLE)


class OnDemand:
    """Executes commands on a connection that is made when it is needed, in the thread that needs it, and replaced after a failure."""

    def __init__(self, get_conn: Callable[[], Any]) -> None:
        self.limits: Limits = Limits()
        self.make = get_conn
        self._connection: Any = None

    def for_renewals(self) -> Self:
        """Itself: it renews, and does nothing else."""
        return self

    def execute(self, command: Command[R], timeout_s: float) -> R:  # noqa: ARG002 - the connection is of the caller's making
        try:
            if self._connection is None:
                self._connection = self.make()
            return execute_on(self._connection, command)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, in the thread that used it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Lent(ControlPlaneClient):
    """A client on a borrowed connection, whose renewals go through another."""

    def __init__(self, store: Any, keepalive: Keepalive) -> None:
        super().__init__(store.url)
        self._lent = store
        self._beating = keepalive

    @property
    def store(self) -> Any:
        """What is on the connection."""
        return self._lent

    @property
    def async_store(self) -> Any:
        """The same: it is for tasks if the connection is."""
        return self._lent

    @property
    def keepalive(self) -> Keepalive:
        """What renews through the other connection."""
        return self._beating


def execute_on(connection: Any, command: Command[R]) -> R:
    """Execute a command on a connection."""
    store = connect(connection)
    try:
        return store.execute(command)
    finally:
        store.close()


def opener(connection: Any, get_conn: Callable[[], Any] | None) -> Callable[[], Any]:
    """How to make connections for heartbeats, which are for threads: as the caller says, else like the one that was given."""
    if get_conn is None and in_transaction(connection):
        raise StoreError("the connection is in a transaction, which a heartbeat on another connection could not see: give get_conn=")
    if get_conn is None or iscoroutinefunction(connection.close):
        return _like(connection)
    return get_conn


def _like(connection: Any) -> Callable[[], Any]:
    """What makes another connection to the same database, for threads: a heartbeat has one of its own."""
    if not hasattr(connection, "in_transaction"):
        parameters = {**connection.info.get_parameters(), "password": connection.info.password}
        return lambda: import_module("psycopg").connect(**parameters)
    path = connection.execute("pragma database_list").fetchone()[2]
    if not path:
        raise StoreError("a database in memory has no second connection for heartbeats: give get_conn=, or take a file")
    return lambda: type(connection)(path)
