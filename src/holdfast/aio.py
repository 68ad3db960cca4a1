"""The async public names: those of the package without the `Async` in front of their classes."""

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast import _LAZY as _SYNC
from holdfast.connect import connect_async as connect

if TYPE_CHECKING:
    from holdfast._async.handles.claimed import AsyncQueueClaimContext as QueueClaimContext
    from holdfast._async.handles.claims import AsyncQueueClaim as QueueClaim
    from holdfast._async.handles.consumer import AsyncConsumer as Consumer
    from holdfast._async.handles.copying import copy, undo_copy
    from holdfast._async.handles.election import AsyncElection as Election
    from holdfast._async.handles.flow import AsyncBatch as Batch
    from holdfast._async.handles.flow import AsyncFlow as Flow
    from holdfast._async.handles.groups import AsyncQueueGroup as QueueGroup
    from holdfast._async.handles.job import AsyncJob as Job
    from holdfast._async.handles.leases import AsyncDictLease as DictLease
    from holdfast._async.handles.leases import AsyncDictLock as DictLock
    from holdfast._async.handles.limiter import AsyncLimiter as Limiter
    from holdfast._async.handles.lock import AsyncLock as Lock
    from holdfast._async.handles.mapping import AsyncDict as Dict
    from holdfast._async.handles.once import AsyncOnce as Once
    from holdfast._async.handles.once import once
    from holdfast._async.handles.queue import AsyncQueue as Queue
    from holdfast._async.handles.rwlock import AsyncRWLock as RWLock
    from holdfast._async.handles.schedule import AsyncSchedule as Schedule
    from holdfast._async.handles.schedule import AsyncTaskSchedule as TaskSchedule
    from holdfast._async.handles.semaphore import AsyncSemaphore as Semaphore
    from holdfast._async.handles.task import AsyncBatchTask as BatchTask
    from holdfast._async.handles.task import AsyncBound as Bound
    from holdfast._async.handles.task import AsyncTask as Task
    from holdfast._async.handles.task import AsyncUsingOptions as UsingOptions
    from holdfast._async.handles.tasks import AsyncTasks as Tasks
    from holdfast._async.handles.together import AsyncTogether as Together
    from holdfast._async.handles.work import AsyncQueueWorkItem as QueueWorkItem
    from holdfast._async.handles.worker import AsyncWorker as Worker
    from holdfast._async.handles.worker import worker
    from holdfast.workers.steps._async.child import AsyncChild as Child

__all__ = [
    "Batch",
    "BatchTask",
    "Bound",
    "Child",
    "Consumer",
    "Dict",
    "DictLease",
    "DictLock",
    "Election",
    "Flow",
    "Job",
    "Limiter",
    "Lock",
    "Once",
    "Queue",
    "QueueClaim",
    "QueueClaimContext",
    "QueueGroup",
    "QueueWorkItem",
    "RWLock",
    "Schedule",
    "Semaphore",
    "Task",
    "TaskSchedule",
    "Tasks",
    "Together",
    "UsingOptions",
    "Worker",
    "connect",
    "copy",
    "once",
    "undo_copy",
    "worker",
]

_LAZY = {name: module.replace("._sync.", "._async.") for name, module in _SYNC.items() if "._sync." in module}
"""Where a name is that is imported at its first use."""


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take every misspelt name for one of these.

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        thing = globals()[name] = getattr(import_module(_LAZY[name]), f"Async{name}" if name[0].isupper() else name)
        return thing


def __dir__() -> list[str]:
    return __all__
