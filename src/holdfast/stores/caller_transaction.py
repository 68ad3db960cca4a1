"""The caller's own connections whose transactions commands can take part in; see `Store.within`."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import sqlite3

    import psycopg
    from sqlalchemy import Connection as SqlAlchemyConnection
    from sqlalchemy import PoolProxiedConnection
    from sqlalchemy.ext.asyncio import AsyncConnection as SqlAlchemyAsyncConnection
    from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    class DjangoConnection(Protocol):
        """What is used of a connection of Django, which has no types of its own."""

        @property
        def alias(self) -> str: ...
        @property
        def vendor(self) -> str: ...
        @property
        def in_atomic_block(self) -> bool: ...
        def ensure_connection(self) -> None: ...

    class AsyncpgConnection(Protocol):
        """What tells a connection of asyncpg, or one of its pools, from others: it has no types of its own."""

        def is_in_transaction(self) -> bool: ...
        def get_server_pid(self) -> int: ...

    OfThreads = Session | scoped_session[Any] | SqlAlchemyConnection | PoolProxiedConnection | DjangoConnection
    OfTasks = AsyncSession | async_scoped_session[Any] | SqlAlchemyAsyncConnection | AsyncpgConnection

    Connection = sqlite3.Connection | psycopg.Connection[Any] | OfThreads
    AsyncConnection = sqlite3.Connection | psycopg.AsyncConnection[Any] | OfThreads | OfTasks
else:
    # Drivers are extras, and a store checks what it is given.
    Connection = AsyncConnection = Any
