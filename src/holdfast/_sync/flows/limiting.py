# Generated from src/holdfast/_async/flows/limiting.py by tools/unasync.py; do not edit.
"""Acquires units of a rate with a time-out: asks, and where it is too early, sleeps until it is due."""

import time

from holdfast.arguments.dict_changes import pace_of
from holdfast.codec.call_fields import TIMEOUT_S
from holdfast.commands import Write
from holdfast.errors import RateLimited
from holdfast.process.blocking_calls import sleep
from holdfast.rates import Rate
from holdfast.stores import Store


def acquire(store: Store, name: str, key: str, rate: Rate, *, cost: int, timeout_s: float | None) -> None:
    """Return once the units may be used; RateLimited at once where that would be later than `timeout_s` from now."""
    deadline = time.monotonic() + (TIMEOUT_S.check(timeout_s) or 0.0)
    command = Write(name, [pace_of(key, rate, cost)])
    while True:
        (written,) = store.execute(command)
        if written.written:
            return
        due_in_s = written.due_in_s or 0.0
        if due_in_s > deadline - time.monotonic():
            message = f"limiter {name!r}, key {key}: the rate of {rate.count:,} in {rate.per_s} s is used up for {due_in_s:.6f} s"
            raise RateLimited(f"{message}; wait for longer, or ask again then", due_in_s)
        sleep(due_in_s)
