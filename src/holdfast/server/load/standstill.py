"""Detects that this process stood still: requests in its sockets may be minutes old."""

import asyncio
from collections.abc import Callable
from typing import Final

from holdfast.clock import boot_ns
from holdfast.stores.http.problems import WireError

STALL_S: Final = 30.0
"""Half of how long a copy of a command may travel: see semantics.md, Events."""
STALE_S: Final = 5.0
"""For so long after it stood still it takes no command: time enough to read what lies in the sockets."""
TICK_S: Final = 1.0


def uptime_s() -> float:
    """Seconds since the machine was started, those in which it slept among them."""
    return boot_ns() / 1e9


class Stalls:
    """Looks at the clock every second; a gap means that nothing ran here, and requests may have waited for as long."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = now()
        self._stale_until = self._last
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Look now and every second from now on, on the running event loop."""
        self._look()
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self.watch)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def begin(self) -> float:
        """The moment at which a request begins to be read."""
        return self._look()

    def check(self, begun: float) -> None:
        """Refuse a command that may be older than its answer is remembered; a client that still waits for it sends it again."""
        now = self._look()
        if now < self._stale_until or now - begun > STALL_S:
            problem = "this server stood still, and the command may be an old copy; nothing was changed: send it again"
            raise WireError("store_unavailable", 503, problem)

    def _look(self) -> float:
        now = self._now()
        if now - self._last > STALL_S:
            self._stale_until = now + STALE_S
        self._last = now
        return now
