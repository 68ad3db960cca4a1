# Generated from src/holdfast/_async/flows/acquiring.py by tools/unasync.py; do not edit.
"""Acquires a lease with a time-out: asks, and while the lease is held, waits until it is released or ends."""

import time
from collections.abc import Callable

from holdfast.codec.call_fields import POLL_INTERVAL_S, WAIT_TIMEOUT_S
from holdfast.commands import Acquire, Acquired, LeaseName, Release
from holdfast.commands.topics import lease_topic, line_topic
from holdfast.stores import Store

POLL_S = 1.0
"""How much a missed wake-up can cost."""


def acquire(
    store: Store, command: Acquire, timeout_s: float | None = None, poll_s: float = POLL_S, now: Callable[[], float] = time.monotonic
) -> tuple[Acquired, float]:
    """Ask for the lease; with a time-out wait for it so long in all, `math.inf` for ever.

    Returns the lease in force at the end, whosever it is, and the moment on the clock `now` before it was asked for.
    """
    timeout_s, poll_s = WAIT_TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    topic = lease_topic(command.dict, command.key)
    if command.in_line_s is not None:
        # Asking again keeps the place.
        topic, poll_s = line_topic(command.key, command.lease_id), min(poll_s, command.in_line_s / 3)
    if timeout_s is None:
        started = now()
        return store.execute(command), started
    deadline = time.monotonic() + timeout_s
    with store.mark(topic) as mark:
        while True:
            started = now()
            acquired = store.execute(command)
            if acquired.lease.lease_id == command.lease_id:
                mark.used()
                return acquired, started
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                if acquired.place is not None:
                    store.execute(Release([LeaseName(None, command.key, command.lease_id)]))
                return acquired, started
            store.wait(mark, remaining_s, acquired.ends_in_s, poll_s)
