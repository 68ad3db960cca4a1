"""Where queues are kept."""

from inspect import getattr_static
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from holdfast._sync.flows import browsing
from holdfast.client import ControlPlaneClient
from holdfast.clock import wall_s
from holdfast.commands import Clear, Count
from holdfast.surfaces.localqueue.engine_backend import EngineBackend, look, ready, workers
from holdfast.surfaces.localqueue.foreign_backend import ForeignBackend
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats, counted, looked_at, wall_offset_us
from holdfast.surfaces.localqueue.policies.acting import UNBOUNDED
from holdfast.surfaces.localqueue.put_request import Destination, PutRequest
from holdfast.surfaces.localqueue.queue_names import queue_name
from holdfast.surfaces.localqueue.queue_store import QueueStore
from holdfast.surfaces.localqueue.store_location import (
    InLmdbFolder,
    InMemory,
    InSqliteFile,
    StoreLocation,
    StoreLockedError,
    Target,
    sqlite_url,
)

__all__ = [
    "LMDBQueueStore",
    "MemoryQueueStore",
    "QueueStoreLockedError",
    "SQLiteQueueStore",
    "URLQueueStore",
]

HELD = 10_000
"""How many leases a store object remembers; the longest held are forgotten first."""

METHODS = tuple(name for name in vars(QueueStore) if not name.startswith("_"))
"""What a store of the user's own must have."""


class QueueStoreLockedError(StoreLockedError):
    """LMDB reports that another process has locked the store."""

    kind: ClassVar[str] = "queue store"


class URLQueueStore(StoreLocation):
    """A store by URL: `postgresql://…`, `redis://…`, `sqlite:///…`, `lmdb:///…`, `memory://name`; or a client of one.

    The methods are those of `QueueStore`, for programs that call them themselves. Leases end, and messages come due, by the store's own
    clock: of the moments that are given, those in the future delay a message, and `now` counts only where it is kept or compared with an
    age. `ack`, `release` and `dead_letter` act under the token of the lease that this object's `dequeue` took, if it took one; else as an
    administrator does, only while the message is not claimed.
    """

    locked: ClassVar[type[Exception]] = QueueStoreLockedError

    def __init__(self, target: Target = None, *, path: Path | None = None) -> None:
        super().__init__(target, path=path)
        self._held: dict[tuple[str, str], QueueMessage] = {}

    def enqueue(self, queue: str, value: Any, *, available_at: float, dedupe_key: str | None = None, priority: int = 0) -> QueueMessage:
        request = PutRequest(delay=_in_s(available_at), dedupe_key=dedupe_key, priority=priority)
        (stored,) = self._queue(queue).put(value, request, [Destination(queue, dedupe_key)], UNBOUNDED, None)
        return stored.message

    def dequeue(self, queue: str, *, lease_timeout: float, now: float, leased_by: str | None = None) -> QueueMessage | None:
        del now
        message = self._queue(queue).claim(lease_timeout, leased_by, None, takes=False)
        if message is not None:
            self._held[queue, message.id] = message
            while len(self._held) > HELD:
                self._held.pop(next(iter(self._held)), None)
        return message

    def get(self, queue: str, message_id: str) -> QueueMessage | None:
        return look(self.client, queue_name(queue), message_id)

    def ack(self, queue: str, message_id: str) -> bool:
        return self._queue(queue).ack(self._let_go(queue, message_id))

    def release(
        self,
        queue: str,
        message_id: str,
        *,
        available_at: float,
        last_error: dict[str, Any] | None = None,
        failed_at: float | None = None,
    ) -> bool:
        """Make a message ready again; the store notes itself when it failed."""
        del failed_at
        return self._queue(queue).release(self._let_go(queue, message_id), _in_s(available_at), last_error)

    def dead_letter(self, queue: str, message_id: str, *, last_error: dict[str, Any] | None = None, failed_at: float | None = None) -> bool:
        """Take a message out of delivery; the store notes itself when it failed."""
        del failed_at
        return self._queue(queue).dead_letter(self._let_go(queue, message_id), last_error)

    def qsize(self, queue: str, *, now: float) -> int:
        del now
        return ready(self.client.store.execute(Count(queue_name(queue))))

    def stats(self, queue: str, *, now: float) -> QueueStats:
        del now
        known: dict[str, dict[str, Any]] = {"leases": {}, "seen": {}}
        for (_, what, worker_id), value in dict(workers(self.client).items(prefix=(queue,))).items():
            known[what][worker_id] = value
        return counted(self.client.store.execute(Count(queue_name(queue))), known["leases"], known["seen"])

    def record_worker_heartbeat(self, queue: str, worker_id: str, *, now: float) -> None:
        workers(self.client).put((queue_name(queue), "seen", worker_id), now)

    def dead_letters(self, queue: str, *, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters, the longest dead first."""
        offset_us = wall_offset_us(self.client)
        pages = browsing.pages(self.client.store, queue_name(queue), "dead")
        return list(islice((looked_at(message, page.now, offset_us) for page in pages for message in page.messages), limit))

    def requeue_dead(self, queue: str, message_id: str, *, available_at: float) -> bool:
        return self._queue(queue).requeue_dead(message_id, _in_s(available_at))

    def prune_dead_letters(self, queue: str, *, older_than: float, now: float) -> int:
        """Remove what had been dead for so many seconds at `now`, and return how many."""
        return self._queue(queue).prune_dead_letters(_age(older_than, now))

    def count_dead_letters_older_than(self, queue: str, *, older_than: float, now: float) -> int:
        return self._queue(queue).count_dead_letters_older_than(_age(older_than, now))

    def empty(self, queue: str, *, now: float) -> bool:
        return self.qsize(queue, now=now) == 0

    def purge(self, queue: str) -> int:
        return self.client.store.execute(Clear("queue", queue_name(queue)))

    def _queue(self, name: str) -> EngineBackend:
        return EngineBackend(self, queue_name(name))

    def _let_go(self, queue: str, message_id: str) -> QueueMessage:
        return self._held.pop((queue, message_id), None) or QueueMessage(message_id, None, queue)


class SQLiteQueueStore(InSqliteFile, URLQueueStore):
    """A SQLite file."""


class LMDBQueueStore(InLmdbFolder, URLQueueStore):
    """An LMDB folder."""

    def __init__(self, path: str | PathLike[str], *, map_size: int = 100_000_000) -> None:
        super().__init__(path, map_size=map_size)


class MemoryQueueStore(InMemory, URLQueueStore):
    """The memory of this process, a new store each time."""


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
            f"{type(store).__name__} is not a queue store: it has no method {', '.join(missing)}. Give it those of QueueStore, or use a "
            "SQLiteQueueStore, LMDBQueueStore or MemoryQueueStore, or URLQueueStore('postgresql://…')"
        )
    return store


def backend_of(store: QueueStore, queue: str) -> EngineBackend | ForeignBackend:
    """What keeps the messages of a queue; a store whose methods are not ours is driven by them."""
    if isinstance(store, URLQueueStore) and all(getattr_static(store, name) is getattr_static(URLQueueStore, name) for name in METHODS):
        return EngineBackend(store, queue)
    return ForeignBackend(store, queue)


def _in_s(moment: float) -> float:
    """How many seconds it is until a moment, 0 where it has passed."""
    return max(0.0, moment - wall_s())


def _age(older_than: float, at: float) -> float:
    """The age now of what had an age at a moment."""
    return max(0.0, older_than + wall_s() - at)
