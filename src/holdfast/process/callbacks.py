"""Callbacks that are each called once, by whichever thread comes first."""

import logging
from collections.abc import Callable

_log = logging.getLogger("holdfast")


def call_each_once(callbacks: list[Callable[[], object]], describe: Callable[[], str]) -> None:
    """Call them and take them off the list; one that fails is logged with what it was to learn of."""
    # No lock, so that no fork can leave one taken: each callback is popped once, whoever pops it.
    while callbacks:
        try:
            callback = callbacks.pop()
        except IndexError:
            return
        try:
            callback()
        except Exception:  # noqa: BLE001 - it is foreign code, and the others must still be told
            _log.exception("a callback for %s failed", describe())
