# Generated from src/holdfast/_async/handles/named.py by tools/unasync.py; do not edit.
"""Base of locks, semaphores and elections: a lease by name, entered and left as a context."""

import builtins
from collections.abc import Sequence
from types import TracebackType
from typing import Any, ClassVar, Literal, Unpack

from holdfast._sync.flows.listing import break_lease, held_leases
from holdfast._sync.handles.leases import HeldLease, LeaseContext, take, try_take
from holdfast.arguments.where import StoreHandle, Where, reach
from holdfast.codec import JSON, check_name, encode_key, key_prefix
from holdfast.holding.hold import this_process
from holdfast.holding.lease_request import Sharing, Terms
from holdfast.holding.with_block import Body, Entered
from holdfast.results import LeaseGrant, LeaseInfo

LeaseKind = Literal["lock", "election", "semaphore", "rwlock"]


class ListedLease:
    """What can be listed by its kind."""

    kind: ClassVar[LeaseKind]

    @classmethod
    def list(cls, *, prefix: str = "", limit: int = 1_000, **where: Unpack[Where]) -> "builtins.list[LeaseInfo]":
        """Those of this kind that are held, or waited for, in order of their names, at most `limit`."""
        beginning = key_prefix((cls.kind,)) + key_prefix(prefix)
        return held_leases(reach(**where).store, None, beginning, limit)


class NamedLease(ListedLease, StoreHandle):
    """A handle that may be entered often, by any thread or task, and be left by another one than entered it."""

    name: str
    holder: str

    def __init__(
        self,
        kind: LeaseKind,
        name: str,
        lease_s: float,
        wait_s: float,
        poll_s: float,
        *,
        holder: str | None = None,
        renew_interval_s: float | None = None,
        max_hold_s: float | None = None,
        sharing: Sharing | None = None,
        **where: Unpack[Where],
    ) -> None:
        super().__init__(JSON, **where)
        self.name = name
        self.holder = this_process() if holder is None else holder
        self._terms = Terms(
            None,
            encode_key((kind, check_name(name, kind))),
            name,
            self.holder,
            lease_s,
            renew_interval_s=renew_interval_s,
            max_hold_s=max_hold_s,
            label=f"{kind} {name!r}",
            sharing=sharing,
        )
        self._wait_s = wait_s
        self._poll_s = poll_s
        self._entered = Entered()

    def __enter__(self) -> HeldLease[Any]:
        context = LeaseContext[Any](self._reach(), self._terms, self._wait_s, self._poll_s)
        try:
            lease = context.__enter__()
            self._entered.add(Body.current(), context)
        except BaseException as error:
            self._entered.forget(context)
            context.__exit__(type(error), error, None)
            raise
        return lease

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        context = None
        try:
            context = self._inside()
            context.__exit__(kind, error, trace)
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            # Interrupted before it was on its way out.
            context = self._inside() if context is None else context
            context.__exit__(kind, error, trace)
            raise
        finally:
            self._entered.forget(context)

    def break_(self, reason: str, *, token: int | None = None) -> Sequence[LeaseGrant]:
        """Take it from its holder, and say why; return what was taken. An act for operators.

        The holder learns of it at its next renewal, as if the lease had ended. The next holder's token is higher, so what the former writes
        under its own is refused once the next has written. With `token` only the lease with that token is ended; without, a semaphore
        loses all its holders, up to 1,000.
        """
        return break_lease(self._reach().store, None, self._terms.key, reason, token)

    def _inside(self) -> LeaseContext[Any]:
        """The context that the running body leaves."""
        context = self._entered.left_by(Body.current(), LeaseContext)
        if context is None:
            raise RuntimeError(f"{self._terms.describe()} was left, but this handle was not entered: use `with`, or enter it first")
        return context

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, holder={self.holder!r})"


class Acquirable(NamedLease):
    """A lock, or a share of what several may hold at once: acquired by a call as well."""

    def acquire(self, *, wait_timeout_s: float | None = None) -> HeldLease[Any]:
        """Wait for it, and hold it until the lease that is returned is released.

        Waits as long as said here, else as the handle says, else for ever; then raises `LockTimeout`. Nothing is cancelled when it is
        lost: look at `lost`.
        """
        wait_s = self._wait_s if wait_timeout_s is None else wait_timeout_s
        return (take(self._reach(), self._terms, wait_s, self._poll_s)).keep()

    def try_acquire(self) -> HeldLease[Any] | None:
        """Take it if it is free and no waiter is in line, else None; see `acquire`."""
        _, lease = try_take(self._reach(), self._terms)
        return None if lease is None else lease.keep()
