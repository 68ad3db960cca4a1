"""A queue as it was configured: its name, its store and its policies."""

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

from holdfast.client import ControlPlaneClient
from holdfast.surfaces.localqueue.backends import Backend
from holdfast.surfaces.localqueue.config import PersistentWorkerConfig
from holdfast.surfaces.localqueue.descriptions import (
    LOCAL_QUEUE_PLACEMENT,
    REMOTE_QUEUE_PLACEMENT,
    AcknowledgementPolicy,
    ConsumptionPolicy,
    DeadLetterPolicy,
    LocalityPolicy,
    QueueSemantics,
)
from holdfast.surfaces.localqueue.engine_backend import EngineBackend
from holdfast.surfaces.localqueue.hooks import DispatchPolicy, NotificationPolicy
from holdfast.surfaces.localqueue.names import queue_name
from holdfast.surfaces.localqueue.places import Place
from holdfast.surfaces.localqueue.policies import (
    BackpressureStrategy,
    DeduplicationPolicy,
    DeliveryPolicy,
    LeasePolicy,
    OrderingPolicy,
    RoutingPolicy,
    SubscriptionPolicy,
)
from holdfast.surfaces.localqueue.policysets import Given, Policies, QueuePolicySet, resolve
from holdfast.surfaces.localqueue.queue_store import QueueStore
from holdfast.surfaces.localqueue.specs import QueueSpec, check_retries
from holdfast.surfaces.localqueue.stores import backend_of, store_of
from holdfast.surfaces.localqueue.unfinished import Unfinished


class ConfiguredQueue:
    """What every part of a queue stands on."""

    name: str
    store: Any
    """The store that was given, or the one that was made of a URL, a client or a path."""
    backend: Backend
    retry_defaults: dict[str, Any]
    lease_timeout: float
    maxsize: int
    semantics: QueueSemantics
    locality_policy: LocalityPolicy
    lease_policy: LeasePolicy
    acknowledgement_policy: AcknowledgementPolicy
    dead_letter_policy: DeadLetterPolicy
    deduplication_policy: DeduplicationPolicy
    delivery_policy: DeliveryPolicy
    consumption_policy: ConsumptionPolicy
    dispatch_policy: DispatchPolicy
    notification_policy: NotificationPolicy
    ordering_policy: OrderingPolicy
    routing_policy: RoutingPolicy
    subscription_policy: SubscriptionPolicy
    backpressure: BackpressureStrategy

    def __init__(
        self,
        name: str | None = None,
        *,
        spec: QueueSpec | None = None,
        store: QueueStore | ControlPlaneClient | str | None = None,
        store_path: str | PathLike[str] | None = None,
        lease_timeout: float = 30.0,
        lease_policy: LeasePolicy | None = None,
        acknowledgement_policy: AcknowledgementPolicy | None = None,
        dead_letter_policy: DeadLetterPolicy | None = None,
        deduplication_policy: DeduplicationPolicy | None = None,
        maxsize: int = 0,
        retry_defaults: Mapping[str, Any] | None = None,
        semantics: QueueSemantics | None = None,
        locality_policy: LocalityPolicy | None = None,
        consumption_policy: ConsumptionPolicy | None = None,
        delivery_policy: DeliveryPolicy | None = None,
        dispatch_policy: DispatchPolicy | None = None,
        notification_policy: NotificationPolicy | None = None,
        ordering_policy: OrderingPolicy | None = None,
        routing_policy: RoutingPolicy | None = None,
        subscription_policy: SubscriptionPolicy | None = None,
        backpressure: BackpressureStrategy | None = None,
        policy_set: QueuePolicySet | None = None,
    ) -> None:
        self._spec = spec
        self.name = queue_name(_named(name, spec))
        self.store = store_of(store, store_path)
        self.backend = backend_of(self.store, self.name)
        self.retry_defaults = check_retries(spec.retry_kwargs if retry_defaults is None and spec is not None else retry_defaults)
        given: Given = {
            "semantics": semantics,
            "locality_policy": locality_policy,
            "lease_policy": lease_policy,
            "acknowledgement_policy": acknowledgement_policy,
            "dead_letter_policy": dead_letter_policy,
            "deduplication_policy": deduplication_policy,
            "delivery_policy": delivery_policy,
            "consumption_policy": consumption_policy,
            "dispatch_policy": dispatch_policy,
            "notification_policy": notification_policy,
            "ordering_policy": ordering_policy,
            "routing_policy": routing_policy,
            "subscription_policy": subscription_policy,
            "backpressure": backpressure,
        }
        placement = REMOTE_QUEUE_PLACEMENT if isinstance(self.store, Place) and self.store.is_remote else LOCAL_QUEUE_PLACEMENT
        self._adopt(resolve(_with_spec(given, spec, policy_set), policy_set, placement, lease_timeout, maxsize))

    def _adopt(self, policies: Policies) -> None:
        """Have each policy as an attribute; their types are declared above."""
        vars(self).update({one.name: getattr(policies, one.name) for one in fields(policies)})
        self.lease_timeout = policies.lease_policy.timeout
        self.maxsize = policies.backpressure.maxsize
        self._unfinished = Unfinished()

    def build_worker_config(self, **overrides: Any) -> PersistentWorkerConfig:
        """Make the configuration of workers that the spec, or else the retry defaults, describe."""
        if self._spec is not None:
            return self._spec.build_worker_config(**overrides)
        return PersistentWorkerConfig(**self.retry_defaults).with_overrides(**overrides)

    @property
    def client(self) -> ControlPlaneClient:
        """What reaches the store; TypeError for a store of the user's own, which no client reaches."""
        if not isinstance(self.backend, EngineBackend) or not isinstance(self.store, Place):
            raise TypeError(f"queue {self.name!r} is in a {type(self.store).__name__}, and a client reaches only stores of Holdfast's")
        return self.store.client

    @property
    def takes(self) -> bool:
        """Whether a message is removed by the step that hands it out."""
        return self.delivery_policy.ack_timing == "before-delivery"

    def __repr__(self) -> str:
        return f"PersistentQueue({self.name!r})"


def _named(name: str | None, spec: QueueSpec | None) -> str:
    if name is not None:
        return name
    if spec is None:
        raise ValueError("pass either name= or spec=")
    return spec.name


def _with_spec(given: Given, spec: QueueSpec | None, policy_set: QueuePolicySet | None) -> Given:
    """What was given, and the policies of the spec."""
    if spec is None:
        return given
    if policy_set is not None and (spec.delivery_policy is not None or spec.dead_letter_policy is not None):
        raise ValueError("pass policies with the spec or with policy_set=, not both")
    delivery = _only(given["delivery_policy"], spec.delivery_policy, "delivery_policy")
    dead_letter = _only(given["dead_letter_policy"], spec.dead_letter_policy, "dead_letter_policy")
    return {**given, "delivery_policy": delivery, "dead_letter_policy": dead_letter}


def _only(explicit: Any, of_spec: Any, name: str) -> Any:
    if explicit is not None and of_spec is not None:
        raise ValueError(f"pass either {name}= or a spec with one, not both")
    return of_spec if explicit is None else explicit
