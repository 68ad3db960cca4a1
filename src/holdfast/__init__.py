"""Holdfast: queues, dicts, locks and elections with leases and fencing tokens.

What only an open store needs is imported when it is first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.connect import connect
from holdfast.errors import (
    ClaimLost,
    Closed,
    Compacted,
    HoldfastError,
    KeyInFlight,
    LeaseHeld,
    LeaseLost,
    LockTimeout,
    MissingExtra,
    NotAllowed,
    OutcomeUnknown,
    QueueFull,
    Refused,
    SchemaTooNew,
    StoreCorrupted,
    StoreError,
    StoreFull,
    StoreMoved,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from holdfast._sync.handles.claimed import QueueClaimContext
    from holdfast._sync.handles.claims import QueueClaim
    from holdfast._sync.handles.election import Election
    from holdfast._sync.handles.leases import DictLease, DictLock
    from holdfast._sync.handles.lock import Lock
    from holdfast._sync.handles.mapping import Dict
    from holdfast._sync.handles.queue import Queue
    from holdfast._sync.handles.together import Together
    from holdfast._sync.handles.work import QueueWorkItem
    from holdfast.client import ControlPlaneClient
    from holdfast.results import (
        MISSING,
        DictCompareAndSetResult,
        DictEntry,
        DictResponse,
        Explanation,
        LeaseHolder,
        MessageId,
        QueueMessage,
        QueueResponse,
        Stats,
        WatchEvent,
    )
    from holdfast.steps import Step

__version__ = "0.1.0"

__all__ = [
    "MISSING",
    "ClaimLost",
    "Closed",
    "Compacted",
    "ControlPlaneClient",
    "Dict",
    "DictCompareAndSetResult",
    "DictEntry",
    "DictLease",
    "DictLock",
    "DictResponse",
    "Election",
    "Explanation",
    "HoldfastError",
    "KeyInFlight",
    "LeaseHeld",
    "LeaseHolder",
    "LeaseLost",
    "Lock",
    "LockTimeout",
    "MessageId",
    "MissingExtra",
    "NotAllowed",
    "OutcomeUnknown",
    "Queue",
    "QueueClaim",
    "QueueClaimContext",
    "QueueFull",
    "QueueMessage",
    "QueueResponse",
    "QueueWorkItem",
    "Refused",
    "SchemaTooNew",
    "Stats",
    "Step",
    "StoreCorrupted",
    "StoreError",
    "StoreFull",
    "StoreMoved",
    "StoreUnavailable",
    "Together",
    "WatchEvent",
    "__version__",
    "connect",
]

_LAZY = {
    "QueueClaim": "holdfast._sync.handles.claims",
    "QueueClaimContext": "holdfast._sync.handles.claimed",
    "QueueWorkItem": "holdfast._sync.handles.work",
    "Election": "holdfast._sync.handles.election",
    "DictLease": "holdfast._sync.handles.leases",
    "DictLock": "holdfast._sync.handles.leases",
    "Lock": "holdfast._sync.handles.lock",
    "Dict": "holdfast._sync.handles.mapping",
    "Queue": "holdfast._sync.handles.queue",
    "Together": "holdfast._sync.handles.together",
    "ControlPlaneClient": "holdfast.client",
    "MISSING": "holdfast.results",
    "DictCompareAndSetResult": "holdfast.results",
    "DictEntry": "holdfast.results",
    "DictResponse": "holdfast.results",
    "Explanation": "holdfast.results",
    "LeaseHolder": "holdfast.results",
    "MessageId": "holdfast.results",
    "QueueMessage": "holdfast.results",
    "QueueResponse": "holdfast.results",
    "Stats": "holdfast.results",
    "WatchEvent": "holdfast.results",
    "Step": "holdfast.steps",
}
"""Where a name is that is imported at its first use."""


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take every misspelt name for one of these.

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        thing = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return thing


def __dir__() -> list[str]:
    return __all__
