"""leasedkeyq's errors, each a subclass of the corresponding Holdfast error."""

from holdfast.errors import ClaimLost, Closed, HoldfastError, KeyInFlight


class LeasedKeyQError(HoldfastError):
    """The root of them."""


class KeyAlreadyInFlightError(LeasedKeyQError, KeyInFlight):
    """A put with `if_in_flight="reject"` met a key that is leased."""


class InvalidLeaseError(LeasedKeyQError, ClaimLost):
    """The lease is not held: it ended, was released, or never was one of this queue."""


class LeaseAlreadyAcknowledgedError(LeasedKeyQError, ClaimLost):
    """The lease was acknowledged before."""


class QueueClosedError(LeasedKeyQError, Closed):
    """The queue was closed."""
