# Generated from src/holdfast/_async/handles/lock.py by tools/unasync.py; do not edit.
"""Lock: one holder at a time, by name, among everyone who reaches the same store."""

import math
from typing import Any, ClassVar

from holdfast._sync.flows.acquiring import POLL_S
from holdfast._sync.flows.observing import holder_of
from holdfast._sync.handles.leases import HeldLease, take, try_take
from holdfast._sync.handles.named import NamedLease
from holdfast.aio_attribute import LockTwin
from holdfast.client import ControlPlaneClient
from holdfast.codec import check_name, encode_key
from holdfast.holding.hold import this_process
from holdfast.holding.lease_request import Terms
from holdfast.results import LeaseHolder


class Lock(NamedLease):
    """A lock by name: `with Lock("reports") as held:`.

    It is a lease, renewed in the background while it is held: whoever dies loses it after `lease_s`, and whoever was paused for longer has
    lost it without knowing. So pass `held.token` on to what the lock protects, and let that refuse smaller ones. When it is lost, a task's
    body is cancelled, and leaving raises `LeaseLost`. Threads and tasks may share one handle, and another thread or task than the one that
    entered may leave it. It is not reentrant.
    """

    aio: ClassVar[LockTwin] = LockTwin()

    def __init__(
        self,
        name: str,
        *,
        holder: str | None = None,
        lease_s: float = 60.0,
        wait_timeout_s: float | None = None,
        poll_interval_s: float = POLL_S,
        renew_interval_s: float | None = None,
        max_hold_s: float | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> None:
        terms = Terms(
            None,
            encode_key(("lock", check_name(name, "lock"))),
            name,
            this_process() if holder is None else holder,
            lease_s,
            renew_interval_s=renew_interval_s,
            max_hold_s=max_hold_s,
            label=f"lock {name!r}",
        )
        super().__init__(terms, math.inf if wait_timeout_s is None else wait_timeout_s, poll_interval_s, client, base_url)

    def acquire(self, *, wait_timeout_s: float | None = None) -> HeldLease[Any]:
        """Wait for the lock, and hold it until the lease that is answered is released.

        Waits as long as said here, else as the handle says, else for ever; then raises `LockTimeout`. Nothing is cancelled when it is
        lost: look at `lost`.
        """
        wait_s = self._wait_s if wait_timeout_s is None else wait_timeout_s
        return (take(self._reach(), self._terms, wait_s, self._poll_s)).keep()

    def try_acquire(self) -> HeldLease[Any] | None:
        """Take the lock if it is free, else None; see `acquire`."""
        _, lease = try_take(self._reach(), self._terms)
        return None if lease is None else lease.keep()

    def holding(self) -> LeaseHolder | None:
        """Who has the lock at this moment, None if nobody has."""
        holder, _ = holder_of(self._reach().store, self._terms.key)
        return holder
