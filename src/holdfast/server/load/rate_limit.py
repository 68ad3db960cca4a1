"""Limits the request rate of each caller with a token bucket."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from holdfast.stores.http.problems import WireError

BURST_S: Final = 2.0
"""Who was quiet for so long may ask as often at once as they may in that time."""

CALLERS: Final = 10_000
"""How many callers are remembered; those that asked longest ago are forgotten, and have full buckets."""


class Rates:
    """The requests a second that each caller may make, None for any number; used on one event loop."""

    def __init__(self, each_per_s: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._per_s = each_per_s
        self._now = now
        # What is left in the bucket of each, and at which moment it was.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, caller: str) -> None:
        """Count one request, or refuse it."""
        if self._per_s is None:
            return
        now, full = self._now(), max(1.0, self._per_s * BURST_S)
        left, at = self._left.get(caller, (full, now))
        left = min(full, left + (now - at) * self._per_s)
        if left < 1:
            seconds = math.ceil((1 - left) / self._per_s)
            detail = f"more than {self._per_s:g} requests per second from you: try again in {seconds} s, or combine several"
            raise WireError("too_many_requests", 429, detail, ((b"retry-after", b"%d" % seconds),))
        self._left[caller] = (left - 1, now)
        self._left.move_to_end(caller)
        if len(self._left) > CALLERS:
            self._left.popitem(last=False)
