# Generated from src/holdfast/_async/flows/polling.py by tools/unasync.py; do not edit.
"""Polls, for waits without wake-ups."""

import time
from collections.abc import Callable
from typing import TypeVar

from holdfast.process.blocking_calls import sleep

R = TypeVar("R")


def poll(ask: Callable[[], R | None], timeout_s: float | None, poll_s: float) -> R | None:
    """Ask until there is an answer: once without a time-out, else for so long in all. None where none came."""
    deadline = time.monotonic() + (timeout_s or 0.0)
    while (answer := ask()) is None:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            return None
        sleep(min(poll_s, remaining_s))
    return answer
