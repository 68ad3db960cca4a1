"""Results and envelopes of handlers: values under keys."""

from typing import Any, ClassVar, Protocol

from holdfast.surfaces.localqueue.record_store import RecordStore
from holdfast.surfaces.localqueue.store_location import InLmdbFolder, InMemory, InSqliteFile, StoreLockedError

__all__ = ["LMDBResultStore", "MemoryResultStore", "ResultStore", "ResultStoreLockedError", "SQLiteResultStore", "URLResultStore"]


class ResultStoreLockedError(StoreLockedError):
    """LMDB reports that another process has locked the store."""

    kind: ClassVar[str] = "result store"


class ResultStore(Protocol):
    """Keeps values under keys; one of your own works, too, outside of the atomic step."""

    def load(self, key: str) -> Any | None:
        """The value, None where there is none."""

    def save(self, key: str, value: Any) -> None:
        """Keep a value."""

    def delete(self, key: str) -> None:
        """Remove a value, if there is one."""


class URLResultStore(RecordStore[Any]):
    """Keeps values in the store that a URL names. In the store of the queue, result and acknowledgement are one atomic step."""

    locked: ClassVar[type[Exception]] = ResultStoreLockedError
    dict_name: ClassVar[str] = "localqueue-results"

    def save(self, key: str, value: Any) -> None:
        """Keep a value; TypeError for one that would not come back equal."""
        super().save(key, value)


class SQLiteResultStore(InSqliteFile, URLResultStore):
    """Keeps values in a SQLite file."""


class LMDBResultStore(InLmdbFolder, URLResultStore):
    """Keeps values in an LMDB folder."""


class MemoryResultStore(InMemory, URLResultStore):
    """Keeps values in this process."""
