"""How often something was tried: records under stable keys."""

from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol

from holdfast.clock import wall_us
from holdfast.errors import StoreUnavailable
from holdfast.surfaces.localqueue._async.records import AsyncRecords
from holdfast.surfaces.localqueue._sync.records import Records
from holdfast.surfaces.localqueue.places import Place, Target, lmdb_url, sqlite_url


class AttemptStoreLockedError(StoreUnavailable, RuntimeError):
    """LMDB reports that another process has locked the store."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"the attempt store {path} is locked by another process: stop that one, or choose another path")
        self.path: str = str(path)


@dataclass(slots=True)
class RetryRecord:
    """How often it failed, since when, and whether it may be tried again."""

    attempts: int = 0
    first_attempt_at: float = 0.0
    exhausted: bool = False

    @classmethod
    def new(cls) -> "RetryRecord":
        """One of something that is tried for the first time, now."""
        return cls(first_attempt_at=wall_us() / 1_000_000)


class AttemptStore(Protocol):
    """Keeps records under stable keys; one of your own works, too."""

    def load(self, key: str) -> RetryRecord | None:
        """The record, None where there is none."""
        ...

    def save(self, key: str, record: RetryRecord) -> None:
        """Keep a record."""
        ...

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""
        ...

    def prune_exhausted(self, *, older_than: float, now: float) -> int:
        """Remove the exhausted ones first tried so many seconds before `now`; answer how many."""
        ...

    def count_exhausted_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        ...


class URLAttemptStore(Place):
    """Keeps records in the store that a URL names."""

    locked: ClassVar[type[Exception]] = AttemptStoreLockedError

    def __init__(self, target: Target = None, *, path: Path | None = None) -> None:
        super().__init__(target, path=path)
        self.records: Records = Records(self, "localqueue-attempts")
        self.async_records: AsyncRecords = AsyncRecords(self, "localqueue-attempts")

    def load(self, key: str) -> RetryRecord | None:
        """The record, None where there is none."""
        return record_of(self.records.load(key))

    def save(self, key: str, record: RetryRecord) -> None:
        """Keep a record."""
        self.records.save(key, *kept(record))

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""
        self.records.delete(key)

    def prune_exhausted(self, *, older_than: float, now: float) -> int:
        """Remove the exhausted ones first tried so many seconds before `now`; answer how many."""
        return self.records.prune(now - older_than, "first_attempt_at")

    def count_exhausted_older_than(self, *, older_than: float, now: float) -> int:
        """How many a prune would remove."""
        return self.records.count(now - older_than, "first_attempt_at")


class SQLiteAttemptStore(URLAttemptStore):
    """Keeps records in a SQLite file."""

    def __init__(self, path: str | PathLike[str], timeout: float = 15.0) -> None:
        super().__init__(sqlite_url(path, timeout), path=Path(path).absolute())
        self.prepare()


class LMDBAttemptStore(URLAttemptStore):
    """Keeps records in an LMDB folder."""

    def __init__(self, path: str | PathLike[str], *, map_size: int = 10_000_000) -> None:
        super().__init__(lmdb_url(path, map_size), path=Path(path).absolute())
        self.prepare()


class MemoryAttemptStore(URLAttemptStore):
    """Keeps records in this process."""

    def __init__(self) -> None:
        super().__init__("memory://")


def kept(record: RetryRecord) -> tuple[dict[str, Any], float | None]:
    """A record as it is kept, and from when its age counts: only an exhausted one may be pruned."""
    return asdict(record), record.first_attempt_at if record.exhausted else None


def record_of(found: Any) -> RetryRecord | None:
    """The record that was kept."""
    return None if found is None else RetryRecord(**found)
