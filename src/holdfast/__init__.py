"""Holdfast: queues, dicts, locks and elections with leases and fencing tokens.

What only an open store needs is imported when it is first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.connect import connect
from holdfast.errors import (
    ChildFailed,
    ClaimLost,
    Closed,
    Compacted,
    ExecutionRunning,
    ExecutionUnknown,
    HoldfastError,
    IdTaken,
    JobCancelled,
    JobFailed,
    JobGone,
    JobTooLong,
    KeyInFlight,
    LeaseHeld,
    LeaseLost,
    LineFull,
    LockTimeout,
    MissingExtra,
    NotAllowed,
    OutcomeUnknown,
    QueueFull,
    RateLimited,
    Refused,
    ResultMissing,
    ResultNotKept,
    ScheduleMissing,
    SchemaTooNew,
    StepFailed,
    StepsChanged,
    StepTooLarge,
    StoreCorrupted,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreMoved,
    StoreUnavailable,
    TimeLimitExceeded,
    TookTooLong,
    WorkerStopping,
)
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast._sync.handles.claimed import QueueClaimContext
    from holdfast._sync.handles.claims import QueueClaim
    from holdfast._sync.handles.consumer import Consumer
    from holdfast._sync.handles.copying import copy, undo_copy
    from holdfast._sync.handles.election import Election
    from holdfast._sync.handles.flow import Batch, Flow
    from holdfast._sync.handles.groups import QueueGroup
    from holdfast._sync.handles.job import Job
    from holdfast._sync.handles.leases import DictLease, DictLock
    from holdfast._sync.handles.limiter import Limiter
    from holdfast._sync.handles.lock import Lock
    from holdfast._sync.handles.mapping import Dict
    from holdfast._sync.handles.once import Once, once
    from holdfast._sync.handles.queue import Queue
    from holdfast._sync.handles.rwlock import RWLock
    from holdfast._sync.handles.schedule import Schedule, TaskSchedule
    from holdfast._sync.handles.semaphore import Semaphore
    from holdfast._sync.handles.task import BatchTask, Bound, Task, UsingOptions
    from holdfast._sync.handles.tasks import Tasks
    from holdfast._sync.handles.together import Together
    from holdfast._sync.handles.work import QueueWorkItem
    from holdfast._sync.handles.worker import Worker, worker
    from holdfast.arguments.policy_options import GroupSettings, QueueSettings
    from holdfast.arguments.put_options import PutOptions
    from holdfast.backoff import Backoff
    from holdfast.client import ControlPlaneClient
    from holdfast.rates import Rate
    from holdfast.results import (
        MISSING,
        CopyProgress,
        CopyResult,
        CopyUndone,
        DictCompareAndSetResult,
        DictEntry,
        DictResponse,
        Explanation,
        GroupInfo,
        JobError,
        JobStatus,
        JobStep,
        LeaseGrant,
        LeaseHolder,
        LeaseInfo,
        MessageId,
        QueueMessage,
        QueueResponse,
        Stats,
        WatchEvent,
    )
    from holdfast.schedules.definition import ScheduleOptions, ScheduleStatus, Synced
    from holdfast.schedules.rules import Every
    from holdfast.sql_fence import Fence, fence
    from holdfast.steps import Step
    from holdfast.views.log_rates import QueueRates
    from holdfast.views.task_rates import TaskRates
    from holdfast.workers.calls import Call, Outgoing
    from holdfast.workers.handlers.async_jobs import AsyncJobContext
    from holdfast.workers.handlers.jobs import JobContext, current_job
    from holdfast.workers.handlers.outcomes import BatchFailed, Bury, Retry, Snooze, Throttle
    from holdfast.workers.handlers.resources import Use
    from holdfast.workers.once_record import OnceRecord
    from holdfast.workers.options import ConsumerOptions, JobOptions, ProcessOptions, WorkerOptions
    from holdfast.workers.registry import WorkerHealth, WorkerInfo
    from holdfast.workers.running.breaker import Breaker
    from holdfast.workers.steps._sync.child import Child
    from holdfast.workers.steps.options import StepOptions
    from holdfast.workers.task_options import TaskDefaults, TaskOptions


__all__ = [
    "MISSING",
    "AsyncJobContext",
    "Backoff",
    "Batch",
    "BatchFailed",
    "BatchTask",
    "Bound",
    "Breaker",
    "Bury",
    "Call",
    "Child",
    "ChildFailed",
    "ClaimLost",
    "Closed",
    "Compacted",
    "Consumer",
    "ConsumerOptions",
    "ControlPlaneClient",
    "CopyProgress",
    "CopyResult",
    "CopyUndone",
    "Dict",
    "DictCompareAndSetResult",
    "DictEntry",
    "DictLease",
    "DictLock",
    "DictResponse",
    "Election",
    "Every",
    "ExecutionRunning",
    "ExecutionUnknown",
    "Explanation",
    "Fence",
    "Flow",
    "GroupInfo",
    "GroupSettings",
    "HoldfastError",
    "IdTaken",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobError",
    "JobFailed",
    "JobGone",
    "JobOptions",
    "JobStatus",
    "JobStep",
    "JobTooLong",
    "KeyInFlight",
    "LeaseGrant",
    "LeaseHeld",
    "LeaseHolder",
    "LeaseInfo",
    "LeaseLost",
    "Limiter",
    "LineFull",
    "Lock",
    "LockTimeout",
    "MessageId",
    "MissingExtra",
    "NotAllowed",
    "Once",
    "OnceRecord",
    "OutcomeUnknown",
    "Outgoing",
    "ProcessOptions",
    "PutOptions",
    "Queue",
    "QueueClaim",
    "QueueClaimContext",
    "QueueFull",
    "QueueGroup",
    "QueueMessage",
    "QueueRates",
    "QueueResponse",
    "QueueSettings",
    "QueueWorkItem",
    "RWLock",
    "Rate",
    "RateLimited",
    "Refused",
    "ResultMissing",
    "ResultNotKept",
    "Retry",
    "Schedule",
    "ScheduleMissing",
    "ScheduleOptions",
    "ScheduleStatus",
    "SchemaTooNew",
    "Semaphore",
    "Snooze",
    "Stats",
    "Step",
    "StepFailed",
    "StepOptions",
    "StepTooLarge",
    "StepsChanged",
    "StoreCorrupted",
    "StoreError",
    "StoreFull",
    "StoreMissing",
    "StoreMoved",
    "StoreUnavailable",
    "Synced",
    "Task",
    "TaskDefaults",
    "TaskOptions",
    "TaskRates",
    "TaskSchedule",
    "Tasks",
    "Throttle",
    "TimeLimitExceeded",
    "Together",
    "TookTooLong",
    "Use",
    "UsingOptions",
    "WatchEvent",
    "Worker",
    "WorkerHealth",
    "WorkerInfo",
    "WorkerOptions",
    "WorkerStopping",
    "__version__",
    "connect",
    "copy",
    "current_job",
    "fence",
    "once",
    "undo_copy",
    "worker",
]

_MODULES = {
    "holdfast._sync.handles.claimed": "QueueClaimContext",
    "holdfast._sync.handles.claims": "QueueClaim",
    "holdfast._sync.handles.consumer": "Consumer",
    "holdfast._sync.handles.copying": "copy undo_copy",
    "holdfast._sync.handles.election": "Election",
    "holdfast._sync.handles.flow": "Batch Flow",
    "holdfast._sync.handles.groups": "QueueGroup",
    "holdfast._sync.handles.job": "Job",
    "holdfast._sync.handles.leases": "DictLease DictLock",
    "holdfast._sync.handles.limiter": "Limiter",
    "holdfast._sync.handles.lock": "Lock",
    "holdfast._sync.handles.mapping": "Dict",
    "holdfast._sync.handles.once": "Once once",
    "holdfast._sync.handles.queue": "Queue",
    "holdfast._sync.handles.rwlock": "RWLock",
    "holdfast._sync.handles.schedule": "Schedule TaskSchedule",
    "holdfast._sync.handles.semaphore": "Semaphore",
    "holdfast._sync.handles.task": "BatchTask Bound Task UsingOptions",
    "holdfast._sync.handles.tasks": "Tasks",
    "holdfast._sync.handles.together": "Together",
    "holdfast._sync.handles.work": "QueueWorkItem",
    "holdfast._sync.handles.worker": "Worker worker",
    "holdfast.arguments.policy_options": "GroupSettings QueueSettings",
    "holdfast.arguments.put_options": "PutOptions",
    "holdfast.backoff": "Backoff",
    "holdfast.client": "ControlPlaneClient",
    "holdfast.rates": "Rate",
    "holdfast.results": (
        "MISSING CopyProgress CopyResult CopyUndone DictCompareAndSetResult DictEntry DictResponse "
        "Explanation GroupInfo JobError JobStatus JobStep LeaseGrant LeaseHolder LeaseInfo MessageId "
        "QueueMessage QueueResponse Stats WatchEvent"
    ),
    "holdfast.schedules.definition": "ScheduleOptions ScheduleStatus Synced",
    "holdfast.schedules.rules": "Every",
    "holdfast.sql_fence": "Fence fence",
    "holdfast.steps": "Step",
    "holdfast.views.log_rates": "QueueRates",
    "holdfast.views.task_rates": "TaskRates",
    "holdfast.workers.calls": "Call Outgoing",
    "holdfast.workers.handlers.async_jobs": "AsyncJobContext",
    "holdfast.workers.handlers.jobs": "JobContext current_job",
    "holdfast.workers.handlers.outcomes": "BatchFailed Bury Retry Snooze Throttle",
    "holdfast.workers.handlers.resources": "Use",
    "holdfast.workers.once_record": "OnceRecord",
    "holdfast.workers.options": "ConsumerOptions JobOptions ProcessOptions WorkerOptions",
    "holdfast.workers.registry": "WorkerHealth WorkerInfo",
    "holdfast.workers.running.breaker": "Breaker",
    "holdfast.workers.steps._sync.child": "Child",
    "holdfast.workers.steps.options": "StepOptions",
    "holdfast.workers.task_options": "TaskDefaults TaskOptions",
}
"""The names that are imported at their first use, by their modules."""

_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take every misspelt name for one of these.

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        thing = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return thing


def __dir__() -> list[str]:
    return __all__
