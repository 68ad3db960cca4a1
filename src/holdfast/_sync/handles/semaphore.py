# Generated from src/holdfast/_async/handles/semaphore.py by tools/unasync.py; do not edit.
"""Semaphore: so many holders at a time, by name, among all users of the store."""

from typing import ClassVar, Unpack

from holdfast._sync.handles.named import LeaseKind
from holdfast._sync.handles.shared import SharedLease
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.commands import Resize
from holdfast.holding.lease_request import IN_LINE_S, LeaseOptions, Sharing


@show_options
class Semaphore(SharedLease):
    """A semaphore by name: `with Semaphore("gpu", 4) as held:`.

    Each holder has a lease of its own, renewed in the background, under its own fencing token: a holder that dies frees its share after
    `lease_s`. All users of the name give the same capacity, else `Refused` is raised; `resize` sets another one for all. A share
    weighs 1, or as much of the capacity as `weight` says. Waiters stand in a line, first come, first served; one that dies delays
    those behind it by `in_line_s` at most. If `max_waiters` stand in the line, one more gets `LineFull`.
    """

    aio: ClassVar[Twin] = Twin()
    kind: ClassVar[LeaseKind] = "semaphore"

    def __init__(
        self,
        name: str,
        capacity: int,
        *,
        weight: int = 1,
        lease_s: float = 60.0,
        wait_timeout_s: float | None = None,
        in_line_s: float = IN_LINE_S,
        max_waiters: int | None = None,
        **options: Unpack[LeaseOptions],
    ) -> None:
        super().__init__("semaphore", name, Sharing(capacity, weight, in_line_s, max_waiters), lease_s, wait_timeout_s, **options)

    def resize(self, capacity: int | None) -> int:
        """Set the capacity for all who use the name, whatever they say; None lets them say it again. How much of it is in use now.

        No holder loses a share: with less than is in use, nothing is granted until it fits.
        """
        return (self._reach().store.execute(Resize(self._terms.key, capacity))).used
