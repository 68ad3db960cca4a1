"""Where queues are kept."""

from inspect import getattr_static
from os import PathLike
from pathlib import Path
from typing import ClassVar

from holdfast.client import ControlPlaneClient
from holdfast.errors import StoreUnavailable
from holdfast.surfaces.localqueue.backends import Backend
from holdfast.surfaces.localqueue.engine_backend import EngineBackend
from holdfast.surfaces.localqueue.foreign_backend import ForeignBackend
from holdfast.surfaces.localqueue.places import Target, lmdb_url, sqlite_url
from holdfast.surfaces.localqueue.queue_store import QueueStore
from holdfast.surfaces.localqueue.store_methods import PlacedQueues

METHODS = tuple(name for name in vars(QueueStore) if not name.startswith("_"))
"""What a store of the user's own must have."""


class QueueStoreLockedError(StoreUnavailable, RuntimeError):
    """LMDB reports that another process has locked the store."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"the queue store {path} is locked by another process: stop that one, or choose another path")
        self.path: str = str(path)


class URLQueueStore(PlacedQueues):
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


def store_of(store: "QueueStore | Target", store_path: str | PathLike[str] | None) -> QueueStore:
    """The store that a queue was given, as a store, a URL, a client or a path."""
    if store is not None and store_path is not None:
        raise ValueError("pass either store= or store_path=, not both")
    if store_path is not None:
        # Not a SQLiteQueueStore: localqueue does nothing about a path before the first call.
        return URLQueueStore(sqlite_url(store_path), path=Path(store_path).absolute())
    if isinstance(store, str | ControlPlaneClient | None):
        return URLQueueStore(store)
    missing = [name for name in METHODS if not callable(getattr(store, name, None))]
    if missing:
        raise TypeError(
            f"{type(store).__name__} is no queue store: it has no method {', '.join(missing)}. Give it those of QueueStore, or use a "
            "SQLiteQueueStore, LMDBQueueStore or MemoryQueueStore, or URLQueueStore('postgresql://…')"
        )
    return store


def backend_of(store: QueueStore, queue: str) -> Backend:
    """What keeps the messages of a queue; a store whose methods are not ours is driven by them."""
    if isinstance(store, URLQueueStore) and all(getattr_static(store, name) is getattr_static(URLQueueStore, name) for name in METHODS):
        return EngineBackend(store, queue)
    return ForeignBackend(store, queue)
