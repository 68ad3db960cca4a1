# Generated from src/holdfast/_async/flows/backdating.py by tools/unasync.py; do not edit.
"""Ends claims as if they had been made at another wall-clock time."""

import time
from collections.abc import Sequence

from holdfast.commands import Extend
from holdfast.records import Receipt
from holdfast.stores import Store


def expire_as_of(store: Store, receipts: Sequence[Receipt], claimed_at: float, lease_s: float) -> list[bool]:
    """Let claims end `lease_s` after `claimed_at`, seconds since 1970; at once if that has passed. Return which were held."""
    left_s = claimed_at + lease_s - time.time()
    return (store.execute(Extend(receipts, max(0.0, left_s)))).held
