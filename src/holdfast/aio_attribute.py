"""The attribute `.aio`: from a sync class or object to its async twin."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from holdfast._async.handles.claims import AsyncQueueClaim
    from holdfast._async.handles.consumer import AsyncConsumer
    from holdfast._async.handles.election import AsyncElection
    from holdfast._async.handles.groups import AsyncQueueGroup
    from holdfast._async.handles.job import AsyncJob
    from holdfast._async.handles.leases import AsyncHeldLease
    from holdfast._async.handles.limiter import AsyncLimiter
    from holdfast._async.handles.lock import AsyncLock
    from holdfast._async.handles.mapping import AsyncDict
    from holdfast._async.handles.once import AsyncOnce
    from holdfast._async.handles.queue import AsyncQueue
    from holdfast._async.handles.rwlock import AsyncRWLock
    from holdfast._async.handles.schedule import AsyncSchedule, AsyncTaskSchedule
    from holdfast._async.handles.semaphore import AsyncSemaphore
    from holdfast._async.handles.task import AsyncBatchTask, AsyncTask
    from holdfast._async.handles.tasks import AsyncTasks
    from holdfast._async.handles.work import AsyncQueueWorkItem
    from holdfast._async.handles.worker import AsyncWorker
    from holdfast._sync.handles.claims import QueueClaim
    from holdfast._sync.handles.consumer import Consumer
    from holdfast._sync.handles.election import Election
    from holdfast._sync.handles.groups import QueueGroup
    from holdfast._sync.handles.job import Job
    from holdfast._sync.handles.leases import HeldLease
    from holdfast._sync.handles.limiter import Limiter
    from holdfast._sync.handles.lock import Lock
    from holdfast._sync.handles.mapping import Dict
    from holdfast._sync.handles.once import Once
    from holdfast._sync.handles.queue import Queue
    from holdfast._sync.handles.rwlock import RWLock
    from holdfast._sync.handles.schedule import Schedule, TaskSchedule
    from holdfast._sync.handles.semaphore import Semaphore
    from holdfast._sync.handles.task import BatchTask, Task
    from holdfast._sync.handles.tasks import Tasks
    from holdfast._sync.handles.work import QueueWorkItem
    from holdfast._sync.handles.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")
C = TypeVar("C")


def load(module: str, name: str) -> Any:
    """Give a class by its name; imported only now, because it is of a layer above or belongs to the other twin."""
    return getattr(import_module(module), name)


class Twin:
    """The attribute `aio`: on a class its twin for tasks; on a handle one for tasks with the same name, client and type."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._module = owner.__module__.replace("._sync.", "._async.")
        self._name = f"Async{owner.__name__.removeprefix('Async')}"

    @overload
    def __get__(self, handle: None, owner: "type[QueueWorkItem[Any] | AsyncQueueWorkItem[Any]]") -> "type[AsyncQueueWorkItem[Any]]": ...
    @overload
    def __get__(self, handle: "QueueWorkItem[T] | AsyncQueueWorkItem[T]", owner: type) -> "AsyncQueueWorkItem[T]": ...
    @overload
    def __get__(self, handle: None, owner: "type[QueueClaim[Any] | AsyncQueueClaim[Any]]") -> "type[AsyncQueueClaim[Any]]": ...
    @overload
    def __get__(self, handle: "QueueClaim[T] | AsyncQueueClaim[T]", owner: type) -> "AsyncQueueClaim[T]": ...
    @overload
    def __get__(self, handle: None, owner: "type[Queue[Any] | AsyncQueue[Any]]") -> "type[AsyncQueue[Any]]": ...
    @overload
    def __get__(self, handle: "Queue[T] | AsyncQueue[T]", owner: type) -> "AsyncQueue[T]": ...
    @overload
    def __get__(self, handle: None, owner: "type[HeldLease[Any] | AsyncHeldLease[Any]]") -> "type[AsyncHeldLease[Any]]": ...
    @overload
    def __get__(self, handle: "HeldLease[T] | AsyncHeldLease[T]", owner: type) -> "AsyncHeldLease[T]": ...
    @overload
    def __get__(self, handle: None, owner: "type[Dict[Any] | AsyncDict[Any]]") -> "type[AsyncDict[Any]]": ...
    @overload
    def __get__(self, handle: "Dict[T] | AsyncDict[T]", owner: type) -> "AsyncDict[T]": ...
    @overload
    def __get__(self, handle: None, owner: "type[Job[Any] | AsyncJob[Any]]") -> "type[AsyncJob[Any]]": ...
    @overload
    def __get__(self, handle: "Job[T] | AsyncJob[T]", owner: type) -> "AsyncJob[T]": ...
    @overload
    def __get__(
        self, handle: None, owner: "type[Worker[Any, Any, Any] | AsyncWorker[Any, Any, Any]]"
    ) -> "type[AsyncWorker[Any, Any, Any]]": ...
    @overload
    def __get__(self, handle: "Worker[V, R, C] | AsyncWorker[V, R, C]", owner: type) -> "AsyncWorker[V, R, C]": ...
    @overload
    def __get__(
        self, handle: None, owner: "type[Consumer[Any, Any, Any] | AsyncConsumer[Any, Any, Any]]"
    ) -> "type[AsyncConsumer[Any, Any, Any]]": ...
    @overload
    def __get__(self, handle: "Consumer[V, R, C] | AsyncConsumer[V, R, C]", owner: type) -> "AsyncConsumer[V, R, C]": ...
    @overload
    def __get__(
        self, handle: None, owner: "type[BatchTask[Any, Any, Any] | AsyncBatchTask[Any, Any, Any]]"
    ) -> "type[AsyncBatchTask[Any, Any, Any]]": ...
    @overload
    def __get__(self, handle: "BatchTask[V, R, C] | AsyncBatchTask[V, R, C]", owner: type) -> "AsyncBatchTask[V, R, C]": ...
    @overload
    def __get__(self, handle: None, owner: "type[Task[..., Any, Any] | AsyncTask[..., Any, Any]]") -> "type[AsyncTask[..., Any, Any]]": ...
    @overload
    def __get__(self, handle: "Task[P, R, C] | AsyncTask[P, R, C]", owner: type) -> "AsyncTask[P, R, C]": ...
    @overload
    def __get__(self, handle: None, owner: "type[Tasks | AsyncTasks]") -> "type[AsyncTasks]": ...
    @overload
    def __get__(self, handle: "Tasks | AsyncTasks", owner: type) -> "AsyncTasks": ...
    @overload
    def __get__(self, handle: None, owner: "type[Lock | AsyncLock]") -> "type[AsyncLock]": ...
    @overload
    def __get__(self, handle: "Lock | AsyncLock", owner: type) -> "AsyncLock": ...
    @overload
    def __get__(self, handle: None, owner: "type[Limiter | AsyncLimiter]") -> "type[AsyncLimiter]": ...
    @overload
    def __get__(self, handle: "Limiter | AsyncLimiter", owner: type) -> "AsyncLimiter": ...
    @overload
    def __get__(self, handle: None, owner: "type[QueueGroup | AsyncQueueGroup]") -> "type[AsyncQueueGroup]": ...
    @overload
    def __get__(self, handle: "QueueGroup | AsyncQueueGroup", owner: type) -> "AsyncQueueGroup": ...
    @overload
    def __get__(self, handle: None, owner: "type[Election | AsyncElection]") -> "type[AsyncElection]": ...
    @overload
    def __get__(self, handle: "Election | AsyncElection", owner: type) -> "AsyncElection": ...
    @overload
    def __get__(self, handle: None, owner: "type[Semaphore | AsyncSemaphore]") -> "type[AsyncSemaphore]": ...
    @overload
    def __get__(self, handle: "Semaphore | AsyncSemaphore", owner: type) -> "AsyncSemaphore": ...
    @overload
    def __get__(self, handle: None, owner: "type[RWLock | AsyncRWLock]") -> "type[AsyncRWLock]": ...
    @overload
    def __get__(self, handle: "RWLock | AsyncRWLock", owner: type) -> "AsyncRWLock": ...
    @overload
    def __get__(self, handle: None, owner: "type[Once | AsyncOnce]") -> "type[AsyncOnce]": ...
    @overload
    def __get__(self, handle: "Once | AsyncOnce", owner: type) -> "AsyncOnce": ...
    @overload
    def __get__(self, handle: None, owner: "type[TaskSchedule | AsyncTaskSchedule]") -> "type[AsyncTaskSchedule]": ...
    @overload
    def __get__(self, handle: "TaskSchedule | AsyncTaskSchedule", owner: type) -> "AsyncTaskSchedule": ...
    @overload
    def __get__(self, handle: None, owner: "type[Schedule | AsyncSchedule]") -> "type[AsyncSchedule]": ...
    @overload
    def __get__(self, handle: "Schedule | AsyncSchedule", owner: type) -> "AsyncSchedule": ...
    def __get__(self, handle: Any, owner: type) -> Any:
        for_tasks = load(self._module, self._name)
        if handle is None or isinstance(handle, for_tasks):
            return for_tasks if handle is None else handle
        twin = for_tasks.__new__(for_tasks)
        vars(twin).update(vars(handle))
        return twin
