"""How a worker behaves: what it does with failures, how fast it goes, and how it retries."""

from typing import Any

from msgspec import UNSET, UnsetType


class PersistentWorkerConfig:
    """The behaviour of a worker, for several queues; `retry_kwargs` go to `PersistentRetrying`."""

    def __init__(
        self,
        *,
        dead_letter_on_failure: bool | UnsetType = UNSET,
        dead_letter_on_exhaustion: bool | UnsetType = UNSET,
        release_delay: float = 0.0,
        min_interval: float = 0.0,
        circuit_breaker_failures: int = 0,
        circuit_breaker_cooldown: float = 0.0,
        **retry_kwargs: Any,
    ) -> None:
        check_pace(
            release_delay=release_delay,
            min_interval=min_interval,
            circuit_breaker_failures=circuit_breaker_failures,
            circuit_breaker_cooldown=circuit_breaker_cooldown,
        )
        self.dead_letter_on_failure: bool = one_of(dead_letter_on_failure, dead_letter_on_exhaustion, otherwise=True)
        self.dead_letter_on_exhaustion: bool = self.dead_letter_on_failure
        self.release_delay = release_delay
        self.min_interval = min_interval
        self.circuit_breaker_failures = circuit_breaker_failures
        self.circuit_breaker_cooldown = circuit_breaker_cooldown
        self.retry_kwargs = retry_kwargs

    def with_overrides(
        self,
        *,
        dead_letter_on_failure: bool | UnsetType = UNSET,
        dead_letter_on_exhaustion: bool | UnsetType = UNSET,
        release_delay: float | UnsetType = UNSET,
        min_interval: float | UnsetType = UNSET,
        circuit_breaker_failures: int | UnsetType = UNSET,
        circuit_breaker_cooldown: float | UnsetType = UNSET,
        **retry_kwargs: Any,
    ) -> "PersistentWorkerConfig":
        """The same but for what is given; a `max_tries` takes the place of a `stop`, and the other way round."""
        return PersistentWorkerConfig(
            dead_letter_on_failure=one_of(dead_letter_on_failure, dead_letter_on_exhaustion, otherwise=self.dead_letter_on_failure),
            release_delay=self.release_delay if release_delay is UNSET else release_delay,
            min_interval=self.min_interval if min_interval is UNSET else min_interval,
            circuit_breaker_failures=self.circuit_breaker_failures if circuit_breaker_failures is UNSET else circuit_breaker_failures,
            circuit_breaker_cooldown=self.circuit_breaker_cooldown if circuit_breaker_cooldown is UNSET else circuit_breaker_cooldown,
            **merged_retries(self.retry_kwargs, retry_kwargs),
        )

    def __repr__(self) -> str:
        return f"PersistentWorkerConfig({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def one_of(first: bool | UnsetType, second: bool | UnsetType, *, otherwise: bool) -> bool:  # noqa: FBT001 - two names of one value
    """The value of two names for one option."""
    if first is not UNSET and second is not UNSET and first != second:
        raise ValueError("pass either dead_letter_on_failure= or dead_letter_on_exhaustion=, not conflicting values")
    given = second if first is UNSET else first
    return otherwise if given is UNSET else given


def check_pace(*, circuit_breaker_failures: int = 0, circuit_breaker_cooldown: float = 0.0, **seconds: float) -> None:
    """Refuse what is negative, and a breaker with half of its numbers."""
    breaker = {"circuit_breaker_failures": circuit_breaker_failures, "circuit_breaker_cooldown": circuit_breaker_cooldown}
    for name, value in {**seconds, **breaker}.items():
        if not value >= 0:
            raise ValueError(f"{name} must be greater than or equal to zero, and is {value}")
    if bool(circuit_breaker_failures) != bool(circuit_breaker_cooldown):
        raise ValueError("a circuit breaker requires both circuit_breaker_failures > 0 and circuit_breaker_cooldown > 0")


def merged_retries(*layers: dict[str, Any]) -> dict[str, Any]:
    """Retry options from several sources, the last of which wins."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = {name: value for name, value in merged.items() if not _replaced(name, layer)} | layer
    return merged


def _replaced(name: str, by: dict[str, Any]) -> bool:
    """Whether an option gives way to its counterpart."""
    return (name == "stop" and "max_tries" in by) or (name == "max_tries" and "stop" in by)
