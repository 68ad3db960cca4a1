"""What the shifts of a worker's queues have in common: whether it stops or pauses, and whether its store is there."""

import logging
import math

from holdfast.telemetry.meters import OUTAGES
from holdfast.wording import counted
from holdfast.workers.handlers.outcomes import shown
from holdfast.workers.orders import Orders

_log = logging.getLogger("holdfast.worker")


class ShiftState:
    """The state of a worker while it runs."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self.is_paused: bool = False
        self.is_over: bool = False
        self.grace_s: float | None = None
        """How long jobs may go on; None until it is told to stop."""
        self.beat_at: float = -math.inf
        self.is_beating: bool = False
        self.failed_asks: int = 0
        """How often the store was asked in vain, since it was last reached."""
        self.error: str | None = None
        self.outages: int = 0

    def stop(self, grace_s: float | None = None) -> float:
        """Claim no more; let what runs finish within the grace time, which is returned. Again: at once."""
        if self.grace_s is not None:
            self.grace_s = 0.0
        else:
            self.grace_s = self._orders.grace_s if grace_s is None else grace_s
        return self.grace_s

    @property
    def next_beat_at(self) -> float:
        """When the next heartbeat is to be sent; never while one is under way."""
        return math.inf if self.is_beating else self.beat_at

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self.grace_s is not None

    def lost(self, error: Exception) -> int:
        """The store was not reached; return how often that was so."""
        if not self.failed_asks:
            OUTAGES.add(1)
            _log.warning("worker %s cannot reach its store, and continues once it can: %s", self._orders.name, error)
        self.failed_asks += 1
        self.error = shown(error)
        self.beat_at = -math.inf
        return self.failed_asks

    def came_back(self) -> None:
        """The store was reached."""
        if self.failed_asks:
            _log.warning("worker %s reaches its store again, after %s", self._orders.name, counted(self.failed_asks, "try", "tries"))
            self.outages += 1
            self.failed_asks = 0
