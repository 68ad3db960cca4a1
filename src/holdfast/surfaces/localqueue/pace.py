"""How fast a worker goes: a least time between two starts, and a pause after failures in a row."""

from math import inf

from holdfast.surfaces.localqueue.worker_config import PersistentWorkerConfig
from holdfast.workers.running.breaker import Breaker, Circuit

NOT_FOUND = 127
"""What a shell exits with when there is no such command."""


def is_permanent(error: BaseException) -> bool:
    """Whether trying again cannot help: code that is missing."""
    return isinstance(error, ImportError | NameError) or getattr(error, "exit_code", None) == NOT_FOUND


class Pace:
    """What one worker has to wait for, on a clock of seconds."""

    def __init__(self, config: PersistentWorkerConfig) -> None:
        breaker = Breaker(config.circuit_breaker_failures, config.circuit_breaker_cooldown) if config.circuit_breaker_failures else None
        self._circuit = Circuit(breaker)
        self._min_interval = config.min_interval
        self._next_start_at = -inf

    def next_start_at(self, now: float) -> float:
        """When the next message may be begun."""
        return max(self._next_start_at, now + (self._circuit.closes_in_s(now) or 0.0))

    def started(self, now: float) -> None:
        """A message was begun."""
        self._next_start_at = now + self._min_interval

    def succeeded(self) -> None:
        """A message was done."""
        self._circuit.succeeded()

    def failed(self, error: BaseException, now: float) -> None:
        """A message failed; what cannot be helped says nothing about the next."""
        if not is_permanent(error):
            self._circuit.failed(now)
