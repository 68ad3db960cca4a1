"""Which pieces of work were done: records under stable keys."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from holdfast.clock import wall_s
from holdfast.surfaces.localqueue._sync import records
from holdfast.surfaces.localqueue.record_store import KeyedRecords, RecordStore
from holdfast.surfaces.localqueue.store_location import InLmdbFolder, InMemory, InSqliteFile, StoreLockedError

__all__ = [
    "IdempotencyRecord",
    "IdempotencyStore",
    "IdempotencyStoreLockedError",
    "LMDBIdempotencyStore",
    "MemoryIdempotencyStore",
    "SQLiteIdempotencyStore",
    "URLIdempotencyStore",
]

Status = Literal["pending", "succeeded", "failed"]


class IdempotencyStoreLockedError(StoreLockedError):
    """LMDB reports that another process has locked the store."""

    kind: ClassVar[str] = "idempotency store"


@dataclass(slots=True)
class IdempotencyRecord:
    """What is known of a piece of work."""

    status: Status
    first_seen_at: float
    completed_at: float | None = None
    result_key: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def pending(cls) -> "IdempotencyRecord":
        """One that is seen for the first time, now."""
        return cls("pending", wall_s())


class IdempotencyStore(KeyedRecords[IdempotencyRecord], Protocol):
    """Keeps records under stable keys; one of your own works, too, outside of the atomic step."""

    def prune_completed(self, *, older_than: float, now: float) -> int:
        """Remove those that succeeded so many seconds before `now`; return how many."""

    def count_completed_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""


class URLIdempotencyStore(RecordStore[IdempotencyRecord]):
    """Keeps records in the store that a URL names. In the store of the queue, ledger and acknowledgement are one atomic step."""

    locked: ClassVar[type[Exception]] = IdempotencyStoreLockedError
    dict_name: ClassVar[str] = "localqueue-idempotency"
    record_type: ClassVar[Any] = IdempotencyRecord
    moment: ClassVar[str] = "completed_at"

    @staticmethod
    def has_age(record: IdempotencyRecord) -> bool:
        """Only what succeeded may be pruned."""
        return record.status == "succeeded"

    def prune_completed(self, *, older_than: float, now: float) -> int:
        """Remove those that succeeded so many seconds before `now`; return how many."""
        return records.prune(self, now - older_than)

    def count_completed_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        return records.count(self, now - older_than)


class SQLiteIdempotencyStore(InSqliteFile, URLIdempotencyStore):
    """Keeps records in a SQLite file."""


class LMDBIdempotencyStore(InLmdbFolder, URLIdempotencyStore):
    """Keeps records in an LMDB folder."""


class MemoryIdempotencyStore(InMemory, URLIdempotencyStore):
    """Keeps records in this process."""
