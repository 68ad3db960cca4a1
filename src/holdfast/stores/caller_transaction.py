"""From a store to a transaction of the caller's own in it."""

from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.commands import Command
from holdfast.errors import StoreError
from holdfast.stores import AsyncExecutor, AsyncStore, Executor, Store

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    Connection = sqlite3.Connection | psycopg.Connection[Any]
    AsyncConnection = sqlite3.Connection | psycopg.AsyncConnection[Any]
else:
    # Drivers are extras, and a store checks what it is given.
    Connection = AsyncConnection = Any

R = TypeVar("R")


def within(store: Store, connection: Connection) -> Executor:
    """What executes commands in the connection's transaction, on the data of this store."""
    executor: Executor = _lender(store)(connection)
    return executor


def within_async(store: Store, face: AsyncStore, connection: AsyncConnection) -> AsyncExecutor:
    """The same for tasks; `face` is what tasks have of the store."""
    if hasattr(face, "within"):
        lent: AsyncExecutor = face.within(connection)
        return lent
    executor = within(store, connection)  # type: ignore[arg-type] # a store without a face of its own for this has no async connections
    return face if executor is store else InPlace(executor)


class InPlace:
    """For tasks whose connection blocks: its owner uses it on the event loop already."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def execute(self, command: Command[R]) -> R:
        return self._executor.execute(command)


def _lender(store: Store) -> Any:
    if not hasattr(store, "within"):
        kind = store.url.partition("://")[0]
        raise StoreError(
            f"a store of {kind}:// takes part in no transaction of a connection: leave connection= out, or use SQLite or PostgreSQL"
        )
    return store.within
