"""Counts failed logins per address, and slows down guessing."""

import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from holdfast.stores.http.problems import WireError

FAILED_LOGINS: Final = 10
WINDOW_S: Final = 60.0
ADDRESSES: Final = 10_000
"""How many addresses are remembered; those that failed longest ago are forgotten."""

NETWORK_BITS: Final = 64
"""So many bits of an IPv6 address are one network, whose owner has all of its addresses."""


class Failures:
    """The failed logins of the last while; used on one event loop."""

    def __init__(self, limit: int = FAILED_LOGINS, window_s: float = WINDOW_S, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._window_s = window_s
        self._now = now
        self._moments: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, address: str) -> None:
        """Count one more."""
        source = _source(address)
        moments = self._moments.setdefault(source, deque(maxlen=self._limit))
        moments.append(self._now())
        self._moments.move_to_end(source)
        if len(self._moments) > ADDRESSES:
            self._moments.popitem(last=False)

    def wait_s(self, address: str) -> float:
        """How long this address has to wait before it may try another token."""
        moments = self._moments.get(_source(address))
        if moments is None or len(moments) < self._limit:
            return 0.0
        return max(0.0, moments[0] + self._window_s - self._now())

    def check(self, address: str) -> None:
        """Refuse an address that failed too often, saying when to come again."""
        if (wait_s := self.wait_s(address)) > 0:
            seconds = math.ceil(wait_s)
            detail = f"too many invalid tokens from your address: try again in {seconds} s, with a valid token"
            raise WireError("too_many_failures", 429, detail, ((b"retry-after", b"%d" % seconds),))


def _source(address: str) -> str:
    """Whom an address belongs to."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))
    return address
