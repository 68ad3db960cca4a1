"""How fast a worker goes: a least time between two starts, and a pause after failures in a row."""

from math import inf

from holdfast.surfaces.localqueue.config import PersistentWorkerConfig

NOT_FOUND = 127
"""What a shell exits with when there is no such command."""


def is_permanent(error: BaseException) -> bool:
    """Whether trying again cannot help: code that is missing."""
    return isinstance(error, ImportError | NameError) or getattr(error, "exit_code", None) == NOT_FOUND


class Pace:
    """What one worker has to wait for, on a clock of seconds."""

    def __init__(self, config: PersistentWorkerConfig) -> None:
        self._config = config
        self._failures = 0
        self.next_start_at = -inf

    def started(self, now: float) -> None:
        """A message was begun."""
        if self._config.min_interval:
            self.next_start_at = max(self.next_start_at, now + self._config.min_interval)

    def succeeded(self) -> None:
        """A message was done."""
        self._failures = 0

    def failed(self, error: BaseException, now: float) -> None:
        """A message failed; what cannot be helped says nothing about the next."""
        if is_permanent(error):
            return
        self._failures += 1
        if 0 < self._config.circuit_breaker_failures <= self._failures:
            self._failures = 0
            self.next_start_at = max(self.next_start_at, now + self._config.circuit_breaker_cooldown)
