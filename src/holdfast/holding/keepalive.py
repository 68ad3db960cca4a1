"""The client's background thread that renews its holds and reports losses."""

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol

from holdfast.clock import MovableClock
from holdfast.codec import Limits
from holdfast.commands import Command, Extend, LeaseName, Renew
from holdfast.errors import Closed
from holdfast.holding.hold import Hold, monotonic_s
from holdfast.process import forks
from holdfast.records import Receipt
from holdfast.stores import Renewer
from holdfast.stores.waiting.waiters import LONGEST_NAP_S
from holdfast.telemetry.meters import LATE_RENEWALS, LOST

RETRY = 0.25
"""When to try a renewal again that failed, as a part of the usual interval."""

RETRY_MIN_S = 0.02

TRY = 1 / 3
"""The longest that one try may take, as a part of the time until a hold is lost; at the default interval that leaves time for three."""

SHORTEST_TRY_S = 0.1
LONGEST_TRY_S = 2.0
"""The bounds of that: a server needs a moment to answer, and what is taken while a try meets silence has to wait for its end."""

TESTED_TRY_S = 30.0

LINGER_S = 10.0
"""How long the thread stays when nothing is held."""

FORGET_MIN = 100
"""From so many names on, those that are no longer held are forgotten."""

_log = logging.getLogger("holdfast")


class Renewable(Protocol):
    """What has something to be renewed: a store, or what reaches one."""

    limits: Limits

    def for_renewals(self) -> Renewer:
        """See `Store.for_renewals`."""
        ...


class Keepalive:
    """Renews holds until they are dropped.

    It renews in a thread, so a blocked event loop loses nothing, and through connections of its own, so a silent one loses nothing either:
    each try ends while there is still time for others. Holds that are due, and those that soon will be, are renewed by one command for
    claims and one for leases of each length.
    """

    def __init__(self, store: Renewable, clock: MovableClock | None = None) -> None:
        self._store = store
        self.clock = clock
        """A test's own clock, where the store goes by one: holders measure with it, and they are looked at again when it has moved."""
        self.now: Callable[[], float] = monotonic_s
        self._is_closed = False
        self.begin_in_child()
        forks.look_after(self)
        if clock is not None:
            self.now = lambda: clock.now_us() / 1_000_000
            clock.subscribe(self.look_again)

    def begin_in_child(self) -> None:
        """Start without a thread and without holds, in a forked child again: they stayed with the parent."""
        # Guards the fields below and _is_closed. Reentrant, because the garbage collector may end a context in a thread that holds it.
        self._lock = threading.RLock()
        # Entered by its lock: the exit of a condition is no single step, and a Ctrl-C there would leave the lock taken for ever.
        self._changed = threading.Condition(self._lock)
        self._holds: dict[int, Hold] = {}
        self._thread: threading.Thread | None = None
        self._sleeps_until = -inf
        # Leases by name, so that whoever renews or releases one by its id tells those who hold it. No WeakValueDictionary: what that runs
        # when a hold is gone swallows a Ctrl-C that comes meanwhile.
        self._leases: dict[LeaseName, weakref.ref[Hold]] = {}
        self._forget_at = FORGET_MIN

    def __len__(self) -> int:
        """How many it looks after."""
        return len(self._holds)

    def add(self, *holds: Hold) -> None:
        """Look after holds until they are dropped: renew each, if it is to be, and tell when it is lost."""
        with self._lock:
            if self._is_closed:
                raise Closed("The client was closed; make a new one.")
            keeper = self.look_again
            for hold in holds:
                hold.keeper = keeper
                self._holds[id(hold)] = hold
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="holdfast-keepalive", daemon=True)
                self._thread.start()
            elif any(next_look_at(hold) < self._sleeps_until for hold in holds):
                self._changed.notify()

    def drop(self, *holds: Hold) -> None:
        """Look after them no longer. Never waits for a renewal; one that is under way notifies no one."""
        with self._lock:
            for hold in holds:
                hold.keeper = None
                self._holds.pop(id(hold), None)

    def close(self, *, wait: bool = True) -> None:
        """End the thread, without `wait` as soon as it is done with a renewal under way; what is still held is lost."""
        with self._lock:
            self._is_closed = True
            holds, self._holds = list(self._holds.values()), {}
            thread, self._thread = self._thread, None
            self._changed.notify()
        for hold in holds:
            hold.tell_lost("its client was closed")
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def remember(self, name: LeaseName, hold: Hold) -> Hold:
        """Keep in mind who holds a lease, as long as the hold is referenced."""
        with self._lock:
            self._leases[name] = weakref.ref(hold)
            if len(self._leases) >= self._forget_at:
                self._leases = {name: known for name, known in self._leases.items() if known() is not None}
                self._forget_at = max(FORGET_MIN, 2 * len(self._leases))
        return hold

    def recall(self, name: LeaseName) -> Hold | None:
        """The hold of a lease, if it is referenced in this process."""
        with self._lock:
            known = self._leases.get(name)
        return None if known is None else known()

    def look_again(self) -> None:
        """Look at all of them now: one was renewed for another time, or a test moved the clock."""
        with self._lock:
            self._changed.notify()

    def _work(self) -> None:
        renewer = self._store.for_renewals()
        try:
            while (holds := self._next()) is not None:
                self._end_lost(holds)
                self._renew(holds, renewer)
        finally:
            renewer.close()

    def _next(self) -> list[Hold] | None:
        """Sleep until a hold needs to be looked at; return all of them, or None at the end."""
        with self._lock:
            while not self._is_closed:
                now = self.now()
                look_at = min((next_look_at(hold) for hold in self._holds.values()), default=inf)
                if look_at <= now:
                    return list(self._holds.values())
                self._sleeps_until = look_at
                is_woken = self._changed.wait(self._nap_s(look_at - now))
                self._sleeps_until = -inf
                if not self._holds and not is_woken:
                    # The thread would keep a client alive that nobody has any more; the next hold starts another.
                    self._thread = None
                    return None
        return None

    def _nap_s(self, until_look_s: float) -> float | None:
        # The clock of a test does not say how long to sleep, and dropping the last hold wakes nobody.
        if not self._holds or self.clock is not None:
            return LINGER_S
        return None if until_look_s == inf else min(until_look_s, LONGEST_NAP_S)

    def _end_lost(self, holds: Iterable[Hold]) -> None:
        for hold in holds:
            if hold.lost:
                self._lose(hold, "it could not be renewed in time" if hold.auto_renew else "its lease ended")
            elif hold.auto_renew and hold.max_hold_s is not None and self.now() >= hold.since + hold.max_hold_s:
                hold.auto_renew = False
                _log.error(
                    "%s is held for more than max_hold_s=%s and is no longer renewed; its holder is at:\n%s",
                    hold.describe(),
                    hold.max_hold_s,
                    hold.stack(),
                )

    def _lose(self, hold: Hold, reason: str) -> None:
        with self._lock:
            if self._holds.pop(id(hold), None) is None:
                return
        LOST.add(1)
        hold.tell_lost(reason)

    def _renew(self, holds: Iterable[Hold], renewer: Renewer) -> None:
        renewing = [hold for hold in holds if hold.auto_renew and not hold.lost]
        now = self.now()
        if not any(hold.renew_at <= now for hold in renewing):
            return
        groups: dict[tuple[type, float | None], list[Hold]] = {}
        for hold in renewing:
            # Those that would soon be due come along, so that in time all of them go together.
            if hold.renew_at <= now + hold.interval_s / 2:
                groups.setdefault((type(hold.name), hold.lease_s), []).append(hold)
        for (_, lease_s), group in groups.items():
            size = self._store.limits.batch_items
            for start in range(0, len(group), size):
                execute = partial(renewer.execute, timeout_s=self._timeout_s(renewing))
                self._renew_batch(group[start : start + size], lease_s, execute)

    def _timeout_s(self, renewing: Iterable[Hold]) -> float:
        """How long one try may take: several must fit into what is left of the shortest lease."""
        if self.clock is not None:
            # The clock of a test does not say how long an answer takes.
            return TESTED_TRY_S
        left_s = min(hold.trusted_until for hold in renewing) - self.now()
        return min(max(left_s * TRY, SHORTEST_TRY_S), LONGEST_TRY_S)

    def _renew_batch(self, batch: Sequence[Hold], lease_s: float | None, execute: Callable[[Command[Any]], Any]) -> None:
        started = self.now()
        try:
            held = ask([hold.name for hold in batch], lease_s, execute)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others must be renewed, and these may be in time
            LATE_RENEWALS.add(len(batch))
            _log.warning("%d claims or leases could not be renewed, and will be retried: %s", len(batch), error)
            for hold in batch:
                # Counted from the start: a try that met silence has waited already.
                hold.renew_at = max(started + hold.interval_s * RETRY, self.now() + RETRY_MIN_S)
            return
        for hold, is_held in zip(batch, held, strict=True):
            if not is_held:
                self._lose(hold, "the store reports that it is no longer held")
            elif hold.lease_s == lease_s:
                hold.renewed(started, lease_s)


def ask(names: list[Any], lease_s: float | None, execute: Callable[[Command[Any]], Any]) -> list[bool]:
    """Which of the claims, or leases, are held again."""
    if isinstance(names[0], Receipt):
        held: list[bool] = execute(Extend(names, lease_s)).held
        return held
    return [lease is not None for lease in execute(Renew(names, lease_s)).leases]


def next_look_at(hold: Hold) -> float:
    """When the hold must be renewed, given up, or called lost."""
    if not hold.auto_renew:
        return hold.trusted_until
    give_up_at = inf if hold.max_hold_s is None else hold.since + hold.max_hold_s
    return min(hold.renew_at, hold.trusted_until, give_up_at)
