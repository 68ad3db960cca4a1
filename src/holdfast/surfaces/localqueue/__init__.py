"""localqueue's API on any store of Holdfast's: change the import, keep the program.

What needs tenacity, the extra `retry`, is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.surfaces.localqueue import idempotency, queue_stores, results
from holdfast.surfaces.localqueue.idempotency import *
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue
from holdfast.surfaces.localqueue.policies import acting, commits, descriptive, hooks
from holdfast.surfaces.localqueue.policies.acting import *
from holdfast.surfaces.localqueue.policies.bundles import QueuePolicySet
from holdfast.surfaces.localqueue.policies.commits import *
from holdfast.surfaces.localqueue.policies.descriptive import *
from holdfast.surfaces.localqueue.policies.hooks import *
from holdfast.surfaces.localqueue.queue_names import subscriber_queue_name
from holdfast.surfaces.localqueue.queue_spec import QoS, QueueSpec
from holdfast.surfaces.localqueue.queue_store import QueueStore
from holdfast.surfaces.localqueue.queue_stores import *
from holdfast.surfaces.localqueue.results import *
from holdfast.surfaces.localqueue.worker_config import PersistentWorkerConfig

if TYPE_CHECKING:
    from holdfast.surfaces.localqueue.retry import *
    from holdfast.surfaces.localqueue.workers import persistent_async_worker, persistent_worker, relay_commits, relay_commits_async

__version__ = "0.5.0"
"""The localqueue whose API this is."""

__all__ = [
    "AttemptStore",
    "AttemptStoreLockedError",
    "LMDBAttemptStore",
    "MemoryAttemptStore",
    "PersistentAsyncRetrying",
    "PersistentQueue",
    "PersistentRetryExhausted",
    "PersistentRetrying",
    "PersistentWorkerConfig",
    "QoS",
    "QueueMessage",
    "QueuePolicySet",
    "QueueSpec",
    "QueueStats",
    "QueueStore",
    "RetryRecord",
    "SQLiteAttemptStore",
    "URLAttemptStore",
    "__version__",
    "close_default_store",
    "configure_default_store",
    "configure_default_store_factory",
    "idempotency_key_from_id",
    "key_from_argument",
    "key_from_attr",
    "persistent_async_retry",
    "persistent_async_worker",
    "persistent_retry",
    "persistent_worker",
    "relay_commits",
    "relay_commits_async",
    "subscriber_queue_name",
]
__all__ += acting.__all__
__all__ += commits.__all__
__all__ += descriptive.__all__
__all__ += hooks.__all__
__all__ += idempotency.__all__
__all__ += queue_stores.__all__
__all__ += results.__all__

_WORKERS = {"persistent_async_worker", "persistent_worker", "relay_commits", "relay_commits_async"}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take every misspelt name for one of these.

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{'workers' if name in _WORKERS else 'retry'}")
        thing = globals()[name] = getattr(module, name)
        return thing
