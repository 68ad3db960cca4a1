"""What stores on a caller's own connection have in common."""

from typing import ClassVar

from holdfast.errors import StoreError
from holdfast.stores import AsyncStore, Store, StoreDefaults
from holdfast.stores.renewals import DirectRenewer


class OnConnection(StoreDefaults):
    """A store of one connection, which stays the caller's: it belongs to its thread, and renewals go through it too."""

    is_on_connection = True
    only_threads: ClassVar[str]
    """Why tasks cannot use it, and what to do instead."""

    def for_tasks(self) -> AsyncStore:
        raise StoreError(self.only_threads)

    def for_renewals(self: Store) -> DirectRenewer:
        return DirectRenewer(self)
