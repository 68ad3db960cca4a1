"""Holdfast: queues, dicts, locks and elections with leases and fencing tokens."""

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

__version__ = "0.1.0"

__all__ = [
    "ClaimLost",
    "Closed",
    "Compacted",
    "HoldfastError",
    "KeyInFlight",
    "LeaseHeld",
    "LeaseLost",
    "LockTimeout",
    "MissingExtra",
    "NotAllowed",
    "OutcomeUnknown",
    "QueueFull",
    "Refused",
    "SchemaTooNew",
    "StoreCorrupted",
    "StoreError",
    "StoreFull",
    "StoreMoved",
    "StoreUnavailable",
    "__version__",
    "connect",
]
