"""A hold: until when a claim or lease can be trusted, and whether it was lost."""

import os
import platform
import threading
import traceback
from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Final

from holdfast.clock import boot_us
from holdfast.codec import check_name
from holdfast.codec.call_fields import RENEW_INTERVAL_S
from holdfast.commands import LeaseName
from holdfast.errors import ClaimLost, LeaseLost
from holdfast.process import forks
from holdfast.process.callbacks import call_each_once
from holdfast.process.frames import frames_of_threads
from holdfast.records import NEVER, Message, Receipt, seconds_in

MARGIN = 0.1
MARGIN_MAX_S = 1.0
"""A lease is trusted for a tenth less than it lasts, but no more than this less: a check, and what follows it, take time too."""

LATEST = 0.75
"""The latest renewal, as a part of the lease: later ones could not be repeated."""


def monotonic_s() -> float:
    """The time that holders measure with; unlike `time.monotonic` it goes on while the machine sleeps."""
    return boot_us() / 1_000_000


MACHINE_CHARACTERS: Final = 64
"""A machine may be named longer than a holder."""


def this_process() -> str:
    """The default name of a holder: the machine and the process."""
    return _name_of(forks.this_process())


@lru_cache(maxsize=1)
def _name_of(_: forks.Process) -> str:
    return f"{platform.node()[:MACHINE_CHARACTERS]}:{os.getpid()}"


def claimer_of(claimer: str | None) -> str:
    """The name of a holder: the one that was given, else that of this process."""
    return this_process() if claimer is None else check_name(claimer, "claimer")


def lease_of(message: Message) -> float | None:
    """How long the lease of a message was to last when it was claimed, None without end."""
    return None if message.until >= NEVER else seconds_in(message.until - message.since)


class Hold:
    """One claim or lease, as its holder sees it.

    `started` is the moment, on the clock `now`, before the request was sent that took it: the store cannot have counted from earlier.
    It belongs to the process that made it; in a forked child it is lost. `keeper` is told when it must be renewed for another time,
    and `where` knows what its holder is doing, if that is not what its thread does.
    """

    __slots__ = (
        "__weakref__",
        "_callbacks",
        "_now",
        "_process",
        "_reason",
        "auto_renew",
        "ends_at",
        "interval_s",
        "is_over",
        "keeper",
        "label",
        "lease_s",
        "max_hold_s",
        "name",
        "renew_at",
        "since",
        "thread_id",
        "trusted_until",
        "where",
    )

    auto_renew: bool
    ends_at: float
    interval_s: float
    is_over: bool
    label: str
    lease_s: float | None
    max_hold_s: float | None
    name: Receipt | LeaseName
    renew_at: float
    since: float
    thread_id: int
    trusted_until: float

    def __init__(
        self,
        name: Receipt | LeaseName,
        lease_s: float | None,
        started: float,
        now: Callable[[], float] = monotonic_s,
        *,
        auto_renew: bool = True,
        renew_interval_s: float | None = None,
        max_hold_s: float | None = None,
        label: str = "",
    ) -> None:
        self.name = name
        self.label = label
        self.since = started
        self.auto_renew = auto_renew
        self.max_hold_s = max_hold_s
        self.thread_id = threading.get_ident()
        self.where: Callable[[], str] | None = None
        self.keeper: Callable[[], object] | None = None
        self._now = now
        self._process = forks.this_process()
        self._reason = ""
        self.is_over = False
        self._callbacks: list[Callable[[], object]] = []
        self.lease_s = lease_s
        self.interval_s = interval_s = interval_of(lease_s, renew_interval_s)
        self.ends_at = inf if lease_s is None else started + lease_s
        self.trusted_until = trusted_until(started, lease_s)
        self.renew_at = started + interval_s

    def renewed(self, started: float, lease_s: float | None) -> None:
        """Trust it again, for a lease that was asked for at `started`."""
        # Each field is set once: other threads look at them meanwhile.
        self.ends_at = inf if lease_s is None else started + lease_s
        if lease_s == self.lease_s:
            self.trusted_until = trusted_until(started, lease_s)
            self.renew_at = started + self.interval_s
        else:
            self._change_length(started, lease_s)

    def _change_length(self, started: float, lease_s: float | None) -> None:
        former_s, self.lease_s, self.interval_s = self.lease_s, lease_s, interval_of(lease_s, None)
        if self.keeper is None:
            self.trusted_until = trusted_until(started, lease_s)
            self.renew_at = started + self.interval_s
            return
        # A renewal for the former length may be under way, and have the last word: the shorter one counts until the next, due now.
        self.trusted_until = min(trusted_until(started, former_s), trusted_until(started, lease_s))
        self.renew_at = started
        self.keeper()

    @property
    def lost(self) -> bool:
        """Whether another holder may have it by now."""
        return bool(self._reason) or self._now() >= self.trusted_until or self.is_inherited

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a fork of the one that holds it."""
        return self._process is not forks.this_process()

    @property
    def trusted_for_s(self) -> float:
        """How long it can still be trusted without a renewal."""
        return self.trusted_until - self._now()

    def stack(self) -> str:
        """Where its holder is at this moment."""
        return stack_of(self.thread_id) if self.where is None else self.where()

    def check(self) -> None:
        """Raise `ClaimLost` or `LeaseLost` if it is lost."""
        if self.lost:
            raise self.error()

    def on_lost(self, callback: Callable[[], object]) -> None:
        """Call back, once and from any thread, when it is lost; at once if that was told before."""
        self._callbacks.append(callback)
        if self._reason:
            self._call_back()

    def end(self, reason: str = "it was given back") -> None:
        """Make it over: its holder is done with it, and no one needs to be notified."""
        self._callbacks.clear()
        self.is_over = True
        self._reason = self._reason or reason

    def tell_lost(self, reason: str) -> None:
        """Make it lost for good, and notify those who asked for it."""
        self._reason = self._reason or reason
        self._call_back()

    def _call_back(self) -> None:
        call_each_once(self._callbacks, lambda: f"the loss of {self.describe()}")

    def error(self) -> ClaimLost | LeaseLost:
        """What reports the loss."""
        message = f"{self.describe()} is lost: {self._why()}; another holder may have it now, so stop, and take it again"
        return ClaimLost(message, [self.name]) if isinstance(self.name, Receipt) else LeaseLost(message)

    def _why(self) -> str:
        if self.is_inherited:
            return "it belongs to the process that this one was forked from"
        return self._reason or "its lease ended, or is about to end, before it was renewed"

    def describe(self) -> str:
        """What is held, for a message."""
        if self.label:
            return self.label
        if isinstance(self.name, Receipt):
            return f"the claim on message {self.name.id} of queue {self.name.queue!r}"
        return f"lease {self.name.key}" if self.name.dict is None else f"the lease on key {self.name.key} of dict {self.name.dict!r}"


def trusted_until(started: float, lease_s: float | None) -> float:
    """Until when to trust a lease that was asked for at `started`."""
    if lease_s is None:
        return inf
    return started + lease_s - min(lease_s * MARGIN, MARGIN_MAX_S)


def stack_of(thread_id: int) -> str:
    """Where a thread is at this moment."""
    frame = frames_of_threads().get(thread_id)
    return "".join(traceback.format_stack(frame)) if frame is not None else "(its thread has ended)"


def interval_of(lease_s: float | None, renew_interval_s: float | None) -> float:
    """How often to renew: as asked, by default every third of the lease."""
    if renew_interval_s is not None:
        renew_interval_s = RENEW_INTERVAL_S.check(renew_interval_s)
    if lease_s is None:
        return inf
    if renew_interval_s is None:
        return lease_s / 3
    if renew_interval_s >= lease_s:
        message = f"renew_interval_s must be less than the lease of {lease_s} seconds, not {renew_interval_s}"
        raise ValueError(message)
    return min(renew_interval_s, lease_s * LATEST)
