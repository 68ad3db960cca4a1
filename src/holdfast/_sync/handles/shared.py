# Generated from src/holdfast/_async/handles/shared.py by tools/unasync.py; do not edit.
"""Base of what several may hold at once: a share of a name with capacity, with a line of waiters."""

import math
from collections.abc import Sequence
from typing import Literal, Unpack

from holdfast._sync.flows.observing import holders_of
from holdfast._sync.handles.named import Acquirable
from holdfast.holding.lease_request import LeaseOptions, Sharing
from holdfast.results import LeaseHolder


class SharedLease(Acquirable):
    """A share of a name with capacity: `with` it, or acquire it; who waits is served in the order of arrival."""

    def __init__(
        self,
        kind: Literal["semaphore", "rwlock"],
        name: str,
        sharing: Sharing,
        lease_s: float,
        wait_timeout_s: float | None,
        **options: Unpack[LeaseOptions],
    ) -> None:
        wait_s = math.inf if wait_timeout_s is None else wait_timeout_s
        super().__init__(kind, name, lease_s, wait_s, math.inf, sharing=sharing, **options)

    def holders(self) -> Sequence[LeaseHolder]:
        """Who has a share at this moment, at most 100, by when their leases end."""
        return holders_of(self._reach().store, self._terms.key)
