"""How often something was tried: records under stable keys."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from holdfast.clock import wall_s
from holdfast.surfaces.localqueue._sync import records
from holdfast.surfaces.localqueue.record_store import KeyedRecords, RecordStore
from holdfast.surfaces.localqueue.store_location import InLmdbFolder, InMemory, InSqliteFile, StoreLockedError


class AttemptStoreLockedError(StoreLockedError):
    """LMDB reports that another process has locked the store."""

    kind: ClassVar[str] = "attempt store"


@dataclass(slots=True)
class RetryRecord:
    """How often it failed, since when, and whether it may be tried again."""

    attempts: int = 0
    first_attempt_at: float = 0.0
    exhausted: bool = False

    @classmethod
    def new(cls) -> "RetryRecord":
        """One of something that is tried for the first time, now."""
        return cls(first_attempt_at=wall_s())


class AttemptStore(KeyedRecords[RetryRecord], Protocol):
    """Keeps records under stable keys; one of your own works, too."""

    def prune_exhausted(self, *, older_than: float, now: float) -> int:
        """Remove the exhausted ones first tried so many seconds before `now`; return how many."""

    def count_exhausted_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""


class URLAttemptStore(RecordStore[RetryRecord]):
    """Keeps records in the store that a URL names."""

    locked: ClassVar[type[Exception]] = AttemptStoreLockedError
    dict_name: ClassVar[str] = "localqueue-attempts"
    record_type: ClassVar[Any] = RetryRecord
    moment: ClassVar[str] = "first_attempt_at"

    @staticmethod
    def has_age(record: RetryRecord) -> bool:
        """Only an exhausted one may be pruned."""
        return record.exhausted

    def prune_exhausted(self, *, older_than: float, now: float) -> int:
        """Remove the exhausted ones first tried so many seconds before `now`; return how many."""
        return records.prune(self, now - older_than)

    def count_exhausted_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        return records.count(self, now - older_than)


class SQLiteAttemptStore(InSqliteFile, URLAttemptStore):
    """Keeps records in a SQLite file."""


class LMDBAttemptStore(InLmdbFolder, URLAttemptStore):
    """Keeps records in an LMDB folder."""


class MemoryAttemptStore(InMemory, URLAttemptStore):
    """Keeps records in this process."""
