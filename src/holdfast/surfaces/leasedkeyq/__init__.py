"""leasedkeyq's API: a queue whose items have keys, each handed out under a lease.

In memory by default, with values by reference and any hashable key; `store=` and `name=` give the same on any store, where keys and values
are encoded.
"""

from holdfast.surfaces.leasedkeyq.errors import (
    InvalidLeaseError,
    KeyAlreadyInFlightError,
    LeaseAlreadyAcknowledgedError,
    LeasedKeyQError,
    QueueClosedError,
)
from holdfast.surfaces.leasedkeyq.lease import Lease, LeaseRecord
from holdfast.surfaces.leasedkeyq.queue import InFlightPolicy, LeasedKeyQueue

__all__ = [
    "InFlightPolicy",
    "InvalidLeaseError",
    "KeyAlreadyInFlightError",
    "Lease",
    "LeaseAlreadyAcknowledgedError",
    "LeaseRecord",
    "LeasedKeyQError",
    "LeasedKeyQueue",
    "QueueClosedError",
]
