"""A circuit breaker: after failures in a row, a pause; then one trial."""

from typing import Literal

from msgspec import Struct

from holdfast.codec import check_duration
from holdfast.codec.fields import Flag

SHARED = Flag("shared")

BreakerState = Literal["closed", "open", "half-open"]


class Breaker(Struct, frozen=True):
    """Pause for `cooldown_s` after `failures` failures in a row, then let one job try; its end decides.

    With `shared` the failures of all workers of the queue count together, all of them pause, and one of them lets one job try. The state is
    in the store, in the dict `QUEUE-breaker`, and each claim looks at it first.
    """

    failures: int
    cooldown_s: float = 30.0
    shared: bool = False

    def __post_init__(self) -> None:
        if self.failures < 1:
            raise ValueError(f"failures must be 1 or more, not {self.failures}; leave out the breaker if you need none")
        check_duration(self.cooldown_s, "cooldown_s")
        SHARED.check(self.shared)


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
        return room_in(self.state(now), running)

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


class SharedCircuit:
    """What one worker last saw of the breaker that its queue's workers share, and what it has not told the others yet."""

    def __init__(self, breaker: Breaker) -> None:
        self.breaker = breaker
        self.has_succeeded: bool = False
        """Whether a job was done since the store was told."""
        self.failures: int = 0
        """How many jobs failed since then, or since the last one that was done."""
        self._state: BreakerState = "closed"
        self._until: float | None = None

    def saw(self, state: BreakerState, until: float | None = None) -> None:
        """Remember the state that the store has, for an open one until when, as far as that is known."""
        self._state, self._until = state, until

    def told(self) -> None:
        """The store knows of all jobs that ended."""
        self.has_succeeded, self.failures = False, 0

    def state(self, now: float) -> BreakerState:
        """The state that was seen last; time alone does not change it, since another worker may be the one to try."""
        del now
        return self._state

    def room(self, now: float, running: int) -> float:
        """How many jobs more it lets through."""
        return room_in(self.state(now), running)

    def closes_in_s(self, now: float) -> float | None:
        """How long nothing can change, None if that is not known."""
        return None if self._until is None or now >= self._until else self._until - now

    def succeeded(self) -> None:
        """A job was done."""
        self.has_succeeded, self.failures = True, 0

    def failed(self, now: float) -> None:
        """A job failed."""
        del now
        self.failures += 1


def room_in(state: BreakerState, running: int) -> float:
    """How many jobs more a breaker lets through in this state."""
    match state:
        case "closed":
            return float("inf")
        case "open":
            return 0
        case "half-open":
            return max(0, 1 - running)
