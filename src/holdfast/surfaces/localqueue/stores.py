"""Where queues are kept."""

from os import PathLike
from pathlib import Path
from typing import ClassVar, Protocol

from holdfast.client import ControlPlaneClient
from holdfast.errors import StoreUnavailable
from holdfast.surfaces.localqueue.places import Place, Target, lmdb_url, sqlite_url


class QueueStoreLockedError(StoreUnavailable, RuntimeError):
    """LMDB reports that another process has locked the store."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"the queue store {path} is locked by another process: stop that one, or choose another path")
        self.path: str = str(path)


class QueueStore(Protocol):
    """What a queue needs of a store: a client that reaches it."""

    @property
    def client(self) -> ControlPlaneClient:
        """What reaches the store."""
        ...

    def close(self) -> None:
        """Give back what the store holds."""
        ...


class URLQueueStore(Place):
    """A store by URL: `postgresql://…`, `redis://…`, `sqlite:///…`, `lmdb:///…`, `memory://name`; or a client of one."""

    locked: ClassVar[type[Exception]] = QueueStoreLockedError


class SQLiteQueueStore(URLQueueStore):
    """A SQLite file."""

    def __init__(self, path: str | PathLike[str], timeout: float = 15.0) -> None:
        super().__init__(sqlite_url(path, timeout), path=Path(path).absolute())
        self.prepare()


class LMDBQueueStore(URLQueueStore):
    """An LMDB folder."""

    def __init__(self, path: str | PathLike[str], *, map_size: int = 100_000_000) -> None:
        super().__init__(lmdb_url(path, map_size), path=Path(path).absolute())
        self.prepare()


class MemoryQueueStore(URLQueueStore):
    """The memory of this process, a new store each time."""

    def __init__(self) -> None:
        super().__init__("memory://")


def store_of(store: "QueueStore | Target", store_path: str | PathLike[str] | None) -> Place:
    """The place that a queue was given, as a store, a URL, a client or a path."""
    if store is not None and store_path is not None:
        raise ValueError("pass either store= or store_path=, not both")
    if store_path is not None:
        # Not a SQLiteQueueStore: localqueue does nothing about a path before the first call.
        return URLQueueStore(sqlite_url(store_path), path=Path(store_path).absolute())
    if isinstance(store, Place):
        return store
    if isinstance(store, str | ControlPlaneClient | None):
        return URLQueueStore(store)
    raise TypeError(
        f"{type(store).__name__} is not one of Holdfast's stores, and leases, keys and commits need one: "
        "give a SQLiteQueueStore, LMDBQueueStore or MemoryQueueStore, or URLQueueStore('postgresql://…')"
    )
