"""The caller's own connections whose transactions commands can take part in; see `Store.within`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    Connection = sqlite3.Connection | psycopg.Connection[Any]
    AsyncConnection = sqlite3.Connection | psycopg.AsyncConnection[Any]
else:
    # Drivers are extras, and a store checks what it is given.
    Connection = AsyncConnection = Any
