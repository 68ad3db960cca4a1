"""Results and envelopes of handlers: values under keys."""

from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol

from holdfast.errors import StoreUnavailable
from holdfast.surfaces.localqueue._async.records import AsyncRecords
from holdfast.surfaces.localqueue._sync.records import Records
from holdfast.surfaces.localqueue.places import Place, Target, lmdb_url, sqlite_url

__all__ = ["LMDBResultStore", "MemoryResultStore", "ResultStore", "ResultStoreLockedError", "SQLiteResultStore", "URLResultStore"]


class ResultStoreLockedError(StoreUnavailable, RuntimeError):
    """LMDB reports that another process has locked the store."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"the result store {path} is locked by another process: stop that one, or choose another path")
        self.path: str = str(path)


class ResultStore(Protocol):
    """Keeps values under keys; one of your own works, too, outside of the atomic step."""

    def load(self, key: str) -> Any | None:
        """The value, None where there is none."""
        ...

    def save(self, key: str, value: Any) -> None:
        """Keep a value."""
        ...

    def delete(self, key: str) -> None:
        """Remove a value, if there is one."""
        ...


class URLResultStore(Place):
    """Keeps values in the store that a URL names. In the store of the queue, result and acknowledgement are one atomic step."""

    locked: ClassVar[type[Exception]] = ResultStoreLockedError

    def __init__(self, target: Target = None, *, path: Path | None = None) -> None:
        super().__init__(target, path=path)
        self.records: Records = Records(self, "localqueue-results")
        self.async_records: AsyncRecords = AsyncRecords(self, "localqueue-results")

    def load(self, key: str) -> Any | None:
        """The value, None where there is none."""
        return self.records.load(key)

    def save(self, key: str, value: Any) -> None:
        """Keep a value; TypeError for one that would not come back equal."""
        self.records.save(key, value)

    def delete(self, key: str) -> None:
        """Remove a value, if there is one."""
        self.records.delete(key)


class SQLiteResultStore(URLResultStore):
    """Keeps values in a SQLite file."""

    def __init__(self, path: str | PathLike[str], timeout: float = 15.0) -> None:
        super().__init__(sqlite_url(path, timeout), path=Path(path).absolute())
        self.prepare()


class LMDBResultStore(URLResultStore):
    """Keeps values in an LMDB folder."""

    def __init__(self, path: str | PathLike[str], *, map_size: int = 10_000_000) -> None:
        super().__init__(lmdb_url(path, map_size), path=Path(path).absolute())
        self.prepare()


class MemoryResultStore(URLResultStore):
    """Keeps values in this process."""

    def __init__(self) -> None:
        super().__init__("memory://")
