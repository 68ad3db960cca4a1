"""A store on the caller's own psycopg connection, for threads and for tasks; see `_async`."""

from holdfast.errors import StoreError
from holdfast.stores import AsyncStore, StoreDefaults
from holdfast.stores.postgres._async.on_connection import AsyncBorrowing as AsyncBorrowedPostgresStore
from holdfast.stores.postgres._sync.on_connection import Borrowing
from holdfast.stores.renewals import DirectRenewer

__all__ = ["AsyncBorrowedPostgresStore", "BorrowedPostgresStore"]


class BorrowedPostgresStore(Borrowing, StoreDefaults):
    """The store of a connection for threads."""

    is_on_connection = True

    def for_tasks(self) -> AsyncStore:
        raise StoreError("this connection is for threads: give an AsyncConnection for tasks, or connect to the database")

    def for_renewals(self) -> DirectRenewer:
        return DirectRenewer(self)
