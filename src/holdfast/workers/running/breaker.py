"""A circuit breaker: after failures in a row, a pause; then one trial."""

from typing import Literal

from msgspec import Struct

from holdfast.codec import check_duration

BreakerState = Literal["closed", "open", "half-open"]


class Breaker(Struct, frozen=True):
    """Pause for `cooldown_s` after `failures` failures in a row, then let one job try; its end decides."""

    failures: int
    cooldown_s: float = 30.0

    def __post_init__(self) -> None:
        if self.failures < 1:
            raise ValueError(f"failures must be 1 or more, not {self.failures}; leave out the breaker if you need none")
        check_duration(self.cooldown_s, "cooldown_s")


class Circuit:
    """What one worker's breaker has seen; without a breaker it never opens."""

    def __init__(self, breaker: Breaker | None) -> None:
        self._breaker = breaker
        self._failures = 0
        self._open_until: float | None = None

    def state(self, now: float) -> BreakerState:
        """Closed lets everything through, open nothing, half-open one job at a time."""
        if self._open_until is None:
            return "closed"
        return "open" if now < self._open_until else "half-open"

    def room(self, now: float, running: int) -> float:
        """How many jobs more it lets through."""
        match self.state(now):
            case "closed":
                return float("inf")
            case "open":
                return 0
            case "half-open":
                return max(0, 1 - running)

    def closes_in_s(self, now: float) -> float | None:
        """How long it stays open, None if it is not."""
        return None if self._open_until is None or now >= self._open_until else self._open_until - now

    def succeeded(self) -> None:
        """A job was done."""
        self._failures, self._open_until = 0, None

    def failed(self, now: float) -> None:
        """A job failed."""
        self._failures += 1
        if self._breaker is not None and self._failures >= self._breaker.failures:
            self._open_until = now + self._breaker.cooldown_s
