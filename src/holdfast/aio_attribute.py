"""The attribute `.aio`: from a sync class or object to its async twin."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from holdfast._async.handles.claims import AsyncQueueClaim
    from holdfast._async.handles.election import AsyncElection
    from holdfast._async.handles.job import AsyncJob
    from holdfast._async.handles.leases import AsyncHeldLease
    from holdfast._async.handles.lock import AsyncLock
    from holdfast._async.handles.mapping import AsyncDict
    from holdfast._async.handles.once import AsyncOnce
    from holdfast._async.handles.queue import AsyncQueue
    from holdfast._async.handles.work import AsyncQueueWorkItem
    from holdfast._async.handles.worker import AsyncWorker
    from holdfast._sync.handles.claims import QueueClaim
    from holdfast._sync.handles.election import Election
    from holdfast._sync.handles.job import Job
    from holdfast._sync.handles.leases import HeldLease
    from holdfast._sync.handles.lock import Lock
    from holdfast._sync.handles.mapping import Dict
    from holdfast._sync.handles.once import Once
    from holdfast._sync.handles.queue import Queue
    from holdfast._sync.handles.work import QueueWorkItem
    from holdfast._sync.handles.worker import Worker

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")
C = TypeVar("C")


def load(module: str, name: str) -> Any:
    """Give a class by its name; imported only now, because it is of a layer above or belongs to the other twin."""
    return getattr(import_module(module), name)


class Twin:
    """On a class its twin for tasks; on a handle one for tasks with the same name, client and type."""

    module: str
    name: str

    def __get__(self, handle: Any, owner: type) -> Any:
        for_tasks = load(self.module, self.name)
        if handle is None or isinstance(handle, for_tasks):
            return for_tasks if handle is None else handle
        twin = for_tasks.__new__(for_tasks)
        vars(twin).update(vars(handle))
        return twin


class QueueTwin(Twin):
    """The twin of a queue."""

    module = "holdfast._async.handles.queue"
    name = "AsyncQueue"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncQueue[Any]]": ...
        @overload
        def __get__(self, handle: "Queue[T] | AsyncQueue[T]", owner: type) -> "AsyncQueue[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class ClaimTwin(Twin):
    """The twin of a claim: both hold the same."""

    module = "holdfast._async.handles.claims"
    name = "AsyncQueueClaim"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncQueueClaim[Any]]": ...
        @overload
        def __get__(self, handle: "QueueClaim[T] | AsyncQueueClaim[T]", owner: type) -> "AsyncQueueClaim[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class WorkTwin(Twin):
    """The twin of a work item: both hold the same."""

    module = "holdfast._async.handles.work"
    name = "AsyncQueueWorkItem"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncQueueWorkItem[Any]]": ...
        @overload
        def __get__(self, handle: "QueueWorkItem[T] | AsyncQueueWorkItem[T]", owner: type) -> "AsyncQueueWorkItem[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class LeaseTwin(Twin):
    """The twin of a lease that is held: both hold the same."""

    module = "holdfast._async.handles.leases"
    name = "AsyncHeldLease"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncHeldLease[Any]]": ...
        @overload
        def __get__(self, handle: "HeldLease[T] | AsyncHeldLease[T]", owner: type) -> "AsyncHeldLease[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class DictTwin(Twin):
    """The twin of a dict."""

    module = "holdfast._async.handles.mapping"
    name = "AsyncDict"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncDict[Any]]": ...
        @overload
        def __get__(self, handle: "Dict[T] | AsyncDict[T]", owner: type) -> "AsyncDict[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class LockTwin(Twin):
    """The twin of a lock."""

    module = "holdfast._async.handles.lock"
    name = "AsyncLock"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncLock]": ...
        @overload
        def __get__(self, handle: "Lock | AsyncLock", owner: type) -> "AsyncLock": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class ElectionTwin(Twin):
    """The twin of an election."""

    module = "holdfast._async.handles.election"
    name = "AsyncElection"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncElection]": ...
        @overload
        def __get__(self, handle: "Election | AsyncElection", owner: type) -> "AsyncElection": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class JobTwin(Twin):
    """The twin of a job."""

    module = "holdfast._async.handles.job"
    name = "AsyncJob"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncJob[Any]]": ...
        @overload
        def __get__(self, handle: "Job[T] | AsyncJob[T]", owner: type) -> "AsyncJob[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class WorkerTwin(Twin):
    """The twin of a worker; each runs by itself."""

    module = "holdfast._async.handles.worker"
    name = "AsyncWorker"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncWorker[Any, Any, Any]]": ...
        @overload
        def __get__(self, handle: "Worker[V, R, C] | AsyncWorker[V, R, C]", owner: type) -> "AsyncWorker[V, R, C]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...


class OnceTwin(Twin):
    """The twin of a ledger."""

    module = "holdfast._async.handles.once"
    name = "AsyncOnce"

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncOnce]": ...
        @overload
        def __get__(self, handle: "Once | AsyncOnce", owner: type) -> "AsyncOnce": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...
