"""A store on the caller's own psycopg connection, for threads and for tasks; see `_async`."""

from holdfast.stores.on_connection import OnConnection
from holdfast.stores.postgres._async.on_connection import AsyncBorrowing as AsyncBorrowedPostgresStore
from holdfast.stores.postgres._sync.on_connection import Borrowing

__all__ = ["AsyncBorrowedPostgresStore", "BorrowedPostgresStore"]


class BorrowedPostgresStore(Borrowing, OnConnection):
    """The store of a connection for threads."""

    only_threads = "this connection is for threads: give an AsyncConnection for tasks, or connect to the database"
