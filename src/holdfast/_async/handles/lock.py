"""Lock: one holder at a time, by name, among all users of the store."""

import math
from typing import ClassVar, Unpack

from holdfast._async.flows.acquiring import POLL_S
from holdfast._async.flows.observing import holder_of
from holdfast._async.handles.named import AsyncAcquirable, LeaseKind
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.codec.call_fields import FAIR
from holdfast.holding.lease_request import IN_LINE_S, LeaseOptions, Sharing
from holdfast.results import LeaseHolder


@show_options
class AsyncLock(AsyncAcquirable):
    """A lock by name: `with Lock("reports") as held:`.

    It is a lease, renewed in the background while it is held: a holder that dies loses it after `lease_s`, and one paused for longer has
    lost it without knowing. So pass `held.token` on to what the lock protects, and let that refuse smaller ones. When it is lost, a task's
    body is cancelled, and leaving raises `LeaseLost`. Threads and tasks may share one handle, and another thread or task than the one that
    entered may leave it. It is not reentrant.

    Of those who wait, anyone may be next. With `fair=True` they stand in a line, first come, first served: all users of the name
    must say so, else `Refused` is raised. A waiter that dies delays those behind it by `in_line_s` at most. If `max_waiters` stand in the
    line, one more gets `LineFull`.
    """

    aio: ClassVar[Twin] = Twin()
    kind: ClassVar[LeaseKind] = "lock"

    def __init__(
        self,
        name: str,
        *,
        lease_s: float = 60.0,
        wait_timeout_s: float | None = None,
        poll_interval_s: float = POLL_S,
        fair: bool = False,
        in_line_s: float = IN_LINE_S,
        max_waiters: int | None = None,
        **options: Unpack[LeaseOptions],
    ) -> None:
        wait_s = math.inf if wait_timeout_s is None else wait_timeout_s
        # Made in any case: what makes no sense is refused, whether it is used or not.
        line = Sharing(1, 1, in_line_s, max_waiters)
        super().__init__("lock", name, lease_s, wait_s, poll_interval_s, sharing=line if FAIR.check(fair) else None, **options)

    async def holding(self) -> LeaseHolder | None:
        """Who has the lock at this moment, None if no one has."""
        holder, _ = await holder_of(self._reach().async_store, self._terms.key)
        return holder
