"""RWLock: many readers or one writer, by name, among all users of the store."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

from holdfast._async.handles.named import AsyncListedLease, LeaseKind
from holdfast._async.handles.shared import AsyncSharedLease
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.codec.fields import CAPACITY
from holdfast.holding.lease_request import IN_LINE_S, LeaseOptions, Sharing
from holdfast.results import LeaseGrant, LeaseHolder


@show_options
class AsyncRWLock(AsyncListedLease):
    """A read-write lock by name: `with RWLock("index").reading():` beside other readers, `.writing()` alone.

    Readers and writers wait in one line, first come, first served: a waiting writer lets no later reader in, so neither starves. Each has a
    lease of its own, under a fencing token of its own, and loses it if it dies; pass `held.token` on to what is written.
    """

    aio: ClassVar[Twin] = Twin()
    kind: ClassVar[LeaseKind] = "rwlock"

    name: str

    def __init__(
        self,
        name: str,
        *,
        lease_s: float = 60.0,
        wait_timeout_s: float | None = None,
        in_line_s: float = IN_LINE_S,
        max_waiters: int | None = None,
        **options: Unpack[LeaseOptions],
    ) -> None:
        self.name = name
        self._reader = Sharing(CAPACITY.most, 1, in_line_s, max_waiters)
        self._writer = Sharing(CAPACITY.most, CAPACITY.most, in_line_s, max_waiters)
        self._lease_s = lease_s
        self._wait_timeout_s = wait_timeout_s
        self._options = options
        self.reading()  # What is wrong with the arguments is said now.

    def reading(self) -> AsyncSharedLease:
        """The lock beside other readers: enter it, or acquire it."""
        return AsyncSharedLease("rwlock", self.name, self._reader, self._lease_s, self._wait_timeout_s, **self._options)

    def writing(self) -> AsyncSharedLease:
        """The lock alone: enter it, or acquire it."""
        return AsyncSharedLease("rwlock", self.name, self._writer, self._lease_s, self._wait_timeout_s, **self._options)

    async def holders(self) -> Sequence[LeaseHolder]:
        """Who reads or writes at this moment, at most 100, by when their leases end."""
        return await self.reading().holders()

    async def break_(self, reason: str, *, token: int | None = None) -> Sequence[LeaseGrant]:
        """Take it from all who read or write, or from the one with this token, and say why; see `Lock.break_`."""
        return await self.reading().break_(reason, token=token)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"
