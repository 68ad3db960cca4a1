"""Which pieces of work were done: records under stable keys."""

from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from holdfast.clock import wall_us
from holdfast.errors import StoreUnavailable
from holdfast.surfaces.localqueue._async.records import AsyncRecords
from holdfast.surfaces.localqueue._sync.records import Records
from holdfast.surfaces.localqueue.places import Place, Target, lmdb_url, sqlite_url

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


class IdempotencyStoreLockedError(StoreUnavailable, RuntimeError):
    """LMDB reports that another process has locked the store."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"the idempotency store {path} is locked by another process: stop that one, or choose another path")
        self.path: str = str(path)


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
        return cls("pending", wall_us() / 1_000_000)


class IdempotencyStore(Protocol):
    """Keeps records under stable keys; one of your own works, too, outside of the atomic step."""

    def load(self, key: str) -> IdempotencyRecord | None:
        """The record, None where there is none."""
        ...

    def save(self, key: str, record: IdempotencyRecord) -> None:
        """Keep a record."""
        ...

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""
        ...

    def prune_completed(self, *, older_than: float, now: float) -> int:
        """Remove those that succeeded so many seconds before `now`; answer how many."""
        ...

    def count_completed_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        ...


class URLIdempotencyStore(Place):
    """Keeps records in the store that a URL names. In the store of the queue, ledger and acknowledgement are one atomic step."""

    locked: ClassVar[type[Exception]] = IdempotencyStoreLockedError

    def __init__(self, target: Target = None, *, path: Path | None = None) -> None:
        super().__init__(target, path=path)
        self.records: Records = Records(self, "localqueue-idempotency")
        self.async_records: AsyncRecords = AsyncRecords(self, "localqueue-idempotency")

    def load(self, key: str) -> IdempotencyRecord | None:
        """The record, None where there is none."""
        return record_of(self.records.load(key))

    def save(self, key: str, record: IdempotencyRecord) -> None:
        """Keep a record."""
        self.records.save(key, *kept(record))

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""
        self.records.delete(key)

    def prune_completed(self, *, older_than: float, now: float) -> int:
        """Remove those that succeeded so many seconds before `now`; answer how many."""
        return self.records.prune(now - older_than, "completed_at")

    def count_completed_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        return self.records.count(now - older_than, "completed_at")


class SQLiteIdempotencyStore(URLIdempotencyStore):
    """Keeps records in a SQLite file."""

    def __init__(self, path: str | PathLike[str], timeout: float = 15.0) -> None:
        super().__init__(sqlite_url(path, timeout), path=Path(path).absolute())
        self.prepare()


class LMDBIdempotencyStore(URLIdempotencyStore):
    """Keeps records in an LMDB folder."""

    def __init__(self, path: str | PathLike[str], *, map_size: int = 10_000_000) -> None:
        super().__init__(lmdb_url(path, map_size), path=Path(path).absolute())
        self.prepare()


class MemoryIdempotencyStore(URLIdempotencyStore):
    """Keeps records in this process."""

    def __init__(self) -> None:
        super().__init__("memory://")


def kept(record: IdempotencyRecord) -> tuple[dict[str, Any], float | None]:
    """A record as it is kept, and from when its age counts: only what succeeded may be pruned."""
    return asdict(record), record.completed_at if record.status == "succeeded" else None


def record_of(found: Any) -> IdempotencyRecord | None:
    """The record that was kept."""
    return None if found is None else IdempotencyRecord(**found)
