"""A queue and its worker described in one object, built up call by call."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from holdfast.surfaces.localqueue.idempotency import IdempotencyStore
from holdfast.surfaces.localqueue.policies.acting import AT_LEAST_ONCE_DELIVERY, AtMostOnceDelivery, DeliveryPolicy, EffectivelyOnceDelivery
from holdfast.surfaces.localqueue.policies.commits import LOCAL_ATOMIC_COMMIT, NO_RESULT_POLICY, CommitPolicy, ResultPolicy
from holdfast.surfaces.localqueue.policies.descriptive import DEAD_LETTER_QUEUE, DeadLetterPolicy
from holdfast.surfaces.localqueue.worker_config import PersistentWorkerConfig, check_pace

if TYPE_CHECKING:
    from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue

COOLDOWN_S = 30.0
"""How long a breaker stays open that was given no cooldown."""


class QoS(StrEnum):
    """How often a message is handled."""

    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    EFFECTIVELY_ONCE = "effectively-once"


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """What a queue and its workers should be; each `with_…` returns another spec."""

    name: str
    delivery_policy: DeliveryPolicy | None = None
    dead_letter_policy: DeadLetterPolicy | None = None
    dead_letter_on_failure: bool | None = None
    release_delay: float = 0.0
    min_interval: float = 0.0
    circuit_breaker_failures: int = 0
    circuit_breaker_cooldown: float = 0.0
    _retry_items: tuple[tuple[str, Any], ...] = field(default_factory=tuple)

    @property
    def retry_kwargs(self) -> dict[str, Any]:
        """The retry options for queue and worker."""
        return dict(self._retry_items)

    def with_name(self, name: str) -> "QueueSpec":
        """For a queue of another name."""
        return replace(self, name=name)

    def with_qos(
        self,
        qos: QoS | str,
        *,
        idempotency_store: IdempotencyStore | None = None,
        result_policy: ResultPolicy = NO_RESULT_POLICY,
        commit_policy: CommitPolicy = LOCAL_ATOMIC_COMMIT,
    ) -> "QueueSpec":
        """With another delivery policy."""
        policy: DeliveryPolicy = AT_LEAST_ONCE_DELIVERY
        match QoS(qos):
            case QoS.AT_MOST_ONCE:
                policy = AtMostOnceDelivery()
            case QoS.EFFECTIVELY_ONCE:
                policy = EffectivelyOnceDelivery(
                    idempotency_store=idempotency_store, result_policy=result_policy, commit_policy=commit_policy
                )
            case QoS.AT_LEAST_ONCE:
                pass
        return replace(self, delivery_policy=policy)

    def with_dead_letter_queue(self, dead_letter_policy: DeadLetterPolicy = DEAD_LETTER_QUEUE) -> "QueueSpec":
        """With another dead-letter policy."""
        return replace(self, dead_letter_policy=dead_letter_policy)

    def with_dead_letter_on_failure(self, enabled: bool = True) -> "QueueSpec":  # noqa: FBT001, FBT002 - as documented
        """With failed messages dead-lettered, or released."""
        return replace(self, dead_letter_on_failure=enabled)

    def with_retry(self, *, max_retries: int | None = None, **retry_kwargs: Any) -> "QueueSpec":
        """With these retry options beside those it has; `max_retries` is another word for `max_tries`."""
        if max_retries is not None and "max_tries" in retry_kwargs:
            raise ValueError("pass either max_retries= or max_tries=, not both")
        named = {} if max_retries is None else {"max_tries": max_retries}
        return replace(self, _retry_items=tuple(check_retries({**self.retry_kwargs, **named, **retry_kwargs}).items()))

    def with_circuit_breaker(self, *, threshold: int, cooldown: float | None = None) -> "QueueSpec":
        """With a pause of `cooldown` seconds after so many failures in a row; 0 takes the breaker out."""
        cooldown_s = 0.0 if threshold == 0 else COOLDOWN_S if cooldown is None else cooldown
        check_pace(circuit_breaker_failures=threshold, circuit_breaker_cooldown=cooldown_s)
        return replace(self, circuit_breaker_failures=threshold, circuit_breaker_cooldown=cooldown_s)

    def with_release_delay(self, delay: float) -> "QueueSpec":
        """With failed messages released so many seconds later."""
        check_pace(release_delay=delay)
        return replace(self, release_delay=delay)

    def with_min_interval(self, interval: float) -> "QueueSpec":
        """With so many seconds between the starts of two messages."""
        check_pace(min_interval=interval)
        return replace(self, min_interval=interval)

    def build_queue(self, **kwargs: Any) -> "PersistentQueue[Any]":
        """Make the queue; ValueError where `with_retry` and `retry_defaults` disagree on who says how it retries."""
        if "retry_defaults" in kwargs and self._retry_items:
            raise ValueError("pass retry settings with QueueSpec.with_retry() or build_queue(retry_defaults=), not both")
        from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue  # noqa: PLC0415 - each names the other

        return PersistentQueue.from_spec(self, **kwargs)

    def build_worker_config(self, **overrides: Any) -> PersistentWorkerConfig:
        """Make the configuration of its workers."""
        own: dict[str, Any] = {
            "release_delay": self.release_delay,
            "min_interval": self.min_interval,
            "circuit_breaker_failures": self.circuit_breaker_failures,
            "circuit_breaker_cooldown": self.circuit_breaker_cooldown,
            **self.retry_kwargs,
        }
        if self.dead_letter_on_failure is not None:
            own["dead_letter_on_failure"] = self.dead_letter_on_failure
        return PersistentWorkerConfig(**own).with_overrides(**overrides)


def check_retries(retries: Mapping[str, Any] | None) -> dict[str, Any]:
    """The retry options of a queue, refused where they disagree."""
    if retries is None:
        return {}
    if not isinstance(retries, Mapping):
        raise TypeError(f"retry_defaults must be a mapping, and is {retries!r}")
    if "max_tries" in retries and "stop" in retries:
        raise ValueError("retry_defaults cannot set both max_tries and stop")
    max_tries = retries.get("max_tries", 1)
    if isinstance(max_tries, bool) or not isinstance(max_tries, int) or max_tries < 1:
        raise ValueError(f"retry_defaults max_tries must be a positive integer, and is {max_tries!r}")
    return dict(retries)
