"""Base of what several may hold at once: a share of a name with capacity, with a line of waiters."""

import math
from collections.abc import Sequence
from typing import Any, Literal, Unpack

from holdfast._async.flows.observing import holders_of
from holdfast._async.handles.leases import AsyncHeldLease, take, try_take
from holdfast._async.handles.named import AsyncNamedLease
from holdfast.holding.lease_request import LeaseOptions, Sharing
from holdfast.results import LeaseHolder


class AsyncSharedLease(AsyncNamedLease):
    """A share of a name with capacity: `with` it, or acquire it; who waits is served in the order of arrival."""

    def __init__(
        self,
        kind: Literal["semaphore", "rwlock"],
        name: str,
        sharing: Sharing,
        lease_s: float,
        wait_timeout_s: float | None,
        **options: Unpack[LeaseOptions],
    ) -> None:
        wait_s = math.inf if wait_timeout_s is None else wait_timeout_s
        super().__init__(kind, name, lease_s, wait_s, math.inf, sharing=sharing, **options)

    async def acquire(self, *, wait_timeout_s: float | None = None) -> AsyncHeldLease[Any]:
        """Wait for a share, and hold it until the lease that is answered is released.

        Waits as long as said here, else as the handle says, else for ever; then raises `LockTimeout`. Nothing is cancelled when it is
        lost: look at `lost`.
        """
        wait_s = self._wait_s if wait_timeout_s is None else wait_timeout_s
        return (await take(self._reach(), self._terms, wait_s, self._poll_s)).keep()

    async def try_acquire(self) -> AsyncHeldLease[Any] | None:
        """Take a share if there is room and no waiter in line, else None; see `acquire`."""
        _, lease = await try_take(self._reach(), self._terms)
        return None if lease is None else lease.keep()

    async def holders(self) -> Sequence[LeaseHolder]:
        """Who has a share at this moment, at most 100, by when their leases end."""
        return await holders_of(self._reach().async_store, self._terms.key)
