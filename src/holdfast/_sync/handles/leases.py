# Generated from src/holdfast/_async/handles/leases.py by tools/unasync.py; do not edit.
"""Leases held by this process: leases, locks and leaderships."""

from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from holdfast._sync.flows.acquiring import POLL_S, acquire
from holdfast._sync.flows.holding import Holding
from holdfast.aio_attribute import Twin
from holdfast.client import ControlPlaneClient
from holdfast.commands import Acquired, LeaseName, Release, Renew
from holdfast.errors import HoldfastError, LeaseHeld, LockTimeout
from holdfast.holding.hold import Hold
from holdfast.holding.lease_request import Terms
from holdfast.ids import new_id
from holdfast.records import Lease
from holdfast.results import DictResponse, wall_time

V = TypeVar("V")


class HeldLease(Generic[V]):
    """A lease that was granted, and what its holder knows of it.

    `token` is its fencing token: larger than that of every earlier holder, so pass it on to whatever the lease protects.
    `current_value` is the value under the key when the lease was granted. In a forked child it is lost: it belongs to the parent.
    """

    aio: ClassVar[Twin] = Twin()

    key: Any
    holder: str
    lease_id: str
    token: int
    current_value: V | None

    def __init__(self, client: ControlPlaneClient, terms: Terms, lease: Lease, current_value: V | None, hold: Hold) -> None:
        self.key = terms.shown_key
        self.holder = lease.holder
        self.lease_id = lease.lease_id
        self.token = lease.token
        self.current_value = current_value
        self._client = client
        self._name: LeaseName = hold.name  # type: ignore[assignment] # as the hold of every lease has
        self._hold = hold
        self._first_end = wall_time(lease.until, client.store.wall_offset_us()), hold.ends_at

    @property
    def expires_at(self) -> datetime | None:
        """When it ends, on the wall clock, unless it is renewed; None for never."""
        at, ends_at = self._first_end
        return None if at is None else at + timedelta(seconds=self._hold.ends_at - ends_at)

    @property
    def lost(self) -> bool:
        """Whether another holder may have it by now: not renewed in time, given back, or another process's. Does not ask the store."""
        return self._hold.lost

    @property
    def held(self) -> bool:
        """Whether it is not lost."""
        return not self._hold.lost

    @property
    def trusted_for_s(self) -> float:
        """For how many seconds it can still be trusted if no renewal succeeds. Does not ask the store."""
        return self._hold.trusted_for_s

    def check(self) -> None:
        """Raise `LeaseLost` if it is lost; for bodies that nothing can cancel. Does not ask the store."""
        self._hold.check()

    def keep(self) -> Self:
        """Renew it in the background until it is released or lost; nothing is cancelled then, so look at `lost`."""
        self._client.check_renewal()
        self._hold.auto_renew = True
        self._client.keepalive.add(self._hold)
        return self

    def renew(self, lease_s: float | None = None) -> Self:
        """Keep it from now on for `lease_s`, by default as long as before. Raises `LeaseLost` if it is no longer held."""
        if self._hold.is_inherited or self._hold.is_over:
            raise self._hold.error()
        renew_by_name(self._client, self._name, self._hold.lease_s if lease_s is None else lease_s, self._hold)
        return self

    def release(self) -> DictResponse:
        """Give it back. What was lost before raises nothing, and is in the answer's `lost`."""
        return release_by_name(self._client, self._name, self._hold)

    def __repr__(self) -> str:
        state = "lost" if self.lost else "held"
        return f"<{type(self).__name__} {self.key!r} by {self.holder!r}, token {self.token}, {state}>"


DictLease = HeldLease
"""A lease on a key of a dict."""

DictLock = HeldLease
"""A lease on a key of a dict that was taken as a lock, or as a leadership."""


class LeaseContext(Generic[V]):
    """Takes a lease, holds it while the body runs, and gives it back however the body ends.

    When the lease is lost, a task's body is cancelled, and leaving raises `LeaseLost`; an exception of the body's own passes instead, with
    a note.
    """

    lease: HeldLease[V] | None
    """The lease, once it is taken."""

    def __init__(self, client: ControlPlaneClient, terms: Terms, timeout_s: float | None = None, poll_s: float = POLL_S) -> None:
        self.lease = None
        self._client = client
        self._terms = terms
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._holding: Holding | None = None

    def __enter__(self) -> HeldLease[V]:
        if self._holding is not None:
            raise RuntimeError(f"this context of {self._terms.describe()} was entered before: make another")
        if self._terms.auto_renew:
            self._client.check_renewal()
        lease_id = new_id()
        try:
            self.lease = take(self._client, self._terms, self._timeout_s, self._poll_s, lease_id)
            self._holding = Holding(self._client.keepalive, self.lease._hold)  # noqa: SLF001 - a lease and its context are two halves
        except BaseException as error:
            let_go(self._client, self._terms, lease_id, error)
            raise
        return self.lease

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._holding is None:
            return
        try:
            self._holding.leave(error, self._give_back)
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            self._holding.abandon(self._give_back)
            raise

    @property
    def is_lost(self) -> bool:
        """Whether it was taken, and another holder may have it by now."""
        return self.lease is not None and self.lease.lost

    def _give_back(self) -> bool:
        return self.lease is not None and (self.lease.release()).count == 1


def take(
    client: ControlPlaneClient, terms: Terms, timeout_s: float | None = None, poll_s: float = POLL_S, lease_id: str = ""
) -> HeldLease[Any]:
    """Take a lease; raises `LeaseHeld` if it is held, or, after waiting, `LockTimeout`."""
    acquired, lease = try_take(client, terms, timeout_s, poll_s, lease_id)
    if lease is not None:
        return lease
    held = f"{terms.describe()} {_in_the_way(acquired)}"
    if timeout_s is None:
        raise LeaseHeld(f"{held}: try again later, or wait for it", acquired.lease, acquired.ends_in_s, acquired.holders)
    raise LockTimeout(f"{held}, and did not become free within {timeout_s:.3g} seconds")


def _in_the_way(acquired: Acquired) -> str:
    """Who has what was asked for, and for how long."""
    ends = "" if acquired.ends_in_s is None else f" for {acquired.ends_in_s:.3g} seconds more"
    if acquired.place is not None and not acquired.holders:
        return f"is next for {acquired.lease.holder!r}, who is before you in line{ends}"
    others = f" and {len(acquired.holders) - 1} more" if len(acquired.holders) > 1 else ""
    return f"is held by {acquired.lease.holder!r}{others}{ends}"


def try_take(
    client: ControlPlaneClient, terms: Terms, timeout_s: float | None = None, poll_s: float = POLL_S, lease_id: str = ""
) -> tuple[Acquired, HeldLease[Any] | None]:
    """Take a lease if it is free, or becomes so in time; None if not."""
    keepalive = client.keepalive
    command = terms.ask(lease_id or new_id(), waits=bool(timeout_s))
    try:
        acquired, started = acquire(client.store, command, timeout_s, poll_s, keepalive.now)
        if acquired.lease.lease_id != command.lease_id:
            return acquired, None
        return acquired, granted(client, terms, acquired, started)
    except BaseException as error:
        let_go(client, terms, command.lease_id, error)
        raise


def granted(client: ControlPlaneClient, terms: Terms, acquired: Acquired, started: float) -> HeldLease[Any]:
    """The lease that was asked for at `started`, and granted."""
    keepalive = client.keepalive
    name = LeaseName(terms.dict, terms.key, acquired.lease.lease_id)
    hold = terms.hold(name, started, keepalive.now)
    keepalive.remember(name, hold)
    value = None if acquired.entry is None else terms.codec.decode(acquired.entry.value)
    return HeldLease(client, terms, acquired.lease, value, hold)


def let_go(client: ControlPlaneClient, terms: Terms, lease_id: str, error: BaseException) -> None:
    """Release what was perhaps granted to a caller who was cancelled or interrupted, or cannot read its value."""
    name = LeaseName(terms.dict, terms.key, lease_id)
    with suppress(HoldfastError):
        hold = client.keepalive.recall(name)
        if hold is not None:
            client.keepalive.drop(hold)
        # A store that is not open yet granted nothing.
        if not isinstance(error, HoldfastError | GeneratorExit) and client.opened is not None:
            client.store.execute(Release([name]))


def renew_by_name(client: ControlPlaneClient, name: LeaseName, lease_s: float | None, hold: Hold | None = None) -> tuple[Lease, Hold]:
    """Renew a lease, and let its hold know, wherever in this process it is; raises `LeaseLost`."""
    keepalive = client.keepalive
    started = keepalive.now()
    (lease,) = (client.store.execute(Renew([name], lease_s))).leases
    hold = keepalive.recall(name) if hold is None else hold
    if hold is None:
        hold = keepalive.remember(name, Hold(name, lease_s, started, keepalive.now, auto_renew=False))
    if lease is None:
        hold.tell_lost("the store reports that it is no longer held")
        raise hold.error()
    hold.renewed(started, lease_s)
    return lease, hold


def release_by_name(client: ControlPlaneClient, name: LeaseName, hold: Hold | None = None) -> DictResponse:
    """Release a lease, and let its hold know; one that a parent process holds is left alone."""
    hold = client.keepalive.recall(name) if hold is None else hold
    if hold is not None:
        if hold.is_inherited or hold.is_over:
            return DictResponse(0, 1)
        client.keepalive.drop(hold)
    (was_held,) = (client.store.execute(Release([name]))).held
    if hold is not None:
        hold.end("it was given back" if was_held else "the store reports that it is no longer held")
    return DictResponse(1) if was_held else DictResponse(0, 1)


def release(lease: Any) -> DictResponse:
    """Release what is held, whether a thread or a task took it."""
    return release_by_name(lease._client, lease._name, lease._hold)  # noqa: SLF001 - both twins keep these three
