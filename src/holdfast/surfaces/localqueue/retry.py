"""Retries that outlive the process, on tenacity: the extra `retry`."""

from holdfast.errors import MissingExtra

try:
    from holdfast.surfaces.localqueue._async.retrying import PersistentAsyncRetrying, persistent_async_retry
    from holdfast.surfaces.localqueue._sync.retrying import PersistentRetrying, persistent_retry
    from holdfast.surfaces.localqueue.attempts.settings import PersistentRetryExhausted
except ModuleNotFoundError as _missing:
    if _missing.name != "tenacity":
        raise
    raise MissingExtra("holdfast.surfaces.localqueue.retry needs the package 'tenacity': pip install 'holdfast[retry]'") from _missing
from holdfast.surfaces.localqueue.attempts.default_store import (
    close_default_store,
    configure_default_store,
    configure_default_store_factory,
)
from holdfast.surfaces.localqueue.attempts.keys import idempotency_key_from_id, key_from_argument, key_from_attr
from holdfast.surfaces.localqueue.attempts.stores import (
    AttemptStore,
    AttemptStoreLockedError,
    LMDBAttemptStore,
    MemoryAttemptStore,
    RetryRecord,
    SQLiteAttemptStore,
    URLAttemptStore,
)

__all__ = [
    "AttemptStore",
    "AttemptStoreLockedError",
    "LMDBAttemptStore",
    "MemoryAttemptStore",
    "PersistentAsyncRetrying",
    "PersistentRetryExhausted",
    "PersistentRetrying",
    "RetryRecord",
    "SQLiteAttemptStore",
    "URLAttemptStore",
    "close_default_store",
    "configure_default_store",
    "configure_default_store_factory",
    "idempotency_key_from_id",
    "key_from_argument",
    "key_from_attr",
    "persistent_async_retry",
    "persistent_retry",
]
