"""A queue as it was configured: its name, its store and its policies."""

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from os import PathLike
from typing import Any, Unpack

from holdfast.arguments.options import refuse_unknown, show_options
from holdfast.client import ControlPlaneClient
from holdfast.surfaces.localqueue.engine_backend import EngineBackend
from holdfast.surfaces.localqueue.foreign_backend import ForeignBackend
from holdfast.surfaces.localqueue.policies.bundles import AllChoices, QueuePolicies, QueuePolicySet, resolve
from holdfast.surfaces.localqueue.policies.descriptive import LOCAL_QUEUE_PLACEMENT, REMOTE_QUEUE_PLACEMENT
from holdfast.surfaces.localqueue.queue_names import queue_name
from holdfast.surfaces.localqueue.queue_spec import QueueSpec, check_retries
from holdfast.surfaces.localqueue.queue_store import QueueStore
from holdfast.surfaces.localqueue.queue_stores import backend_of, store_of
from holdfast.surfaces.localqueue.store_location import StoreLocation
from holdfast.surfaces.localqueue.unfinished import Unfinished
from holdfast.surfaces.localqueue.worker_config import PersistentWorkerConfig


@show_options
class ConfiguredQueue(QueuePolicies):
    """What every part of a queue stands on."""

    name: str
    store: Any
    """The store that was given, or the one that was made of a URL, a client or a path."""
    backend: EngineBackend | ForeignBackend
    retry_defaults: dict[str, Any]
    lease_timeout: float
    maxsize: int

    def __init__(
        self,
        name: str | None = None,
        *,
        spec: QueueSpec | None = None,
        store: QueueStore | ControlPlaneClient | str | None = None,
        store_path: str | PathLike[str] | None = None,
        lease_timeout: float = 30.0,
        maxsize: int = 0,
        retry_defaults: Mapping[str, Any] | None = None,
        policy_set: QueuePolicySet | None = None,
        **policies: Unpack[AllChoices],
    ) -> None:
        refuse_unknown("PersistentQueue", policies, signature(ConfiguredQueue).parameters.keys())
        self._spec = spec
        self.name = queue_name(_named(name, spec))
        self._store: QueueStore = store_of(store, store_path)
        self.store = self._store
        self.backend = backend_of(self._store, self.name)
        self.retry_defaults = check_retries(spec.retry_kwargs if retry_defaults is None and spec is not None else retry_defaults)
        given = QueuePolicySet(**policies)
        placement = REMOTE_QUEUE_PLACEMENT if isinstance(self.store, StoreLocation) and self.store.is_remote else LOCAL_QUEUE_PLACEMENT
        self._choose(resolve(_with_spec(given, spec, policy_set), policy_set, placement, lease_timeout, maxsize))
        self.lease_timeout = self.lease_policy.timeout
        self.maxsize = self.backpressure.maxsize
        self._unfinished = Unfinished()

    def build_worker_config(self, **overrides: Any) -> PersistentWorkerConfig:
        """Make the configuration of workers that the spec, or else the retry defaults, describe."""
        if self._spec is not None:
            return self._spec.build_worker_config(**overrides)
        return PersistentWorkerConfig(**self.retry_defaults).with_overrides(**overrides)

    @property
    def client(self) -> ControlPlaneClient:
        """What reaches the store; TypeError for a store of the user's own, which no client reaches."""
        if not isinstance(self.backend, EngineBackend) or not isinstance(self.store, StoreLocation):
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


def _with_spec(given: QueuePolicySet, spec: QueueSpec | None, policy_set: QueuePolicySet | None) -> QueuePolicySet:
    """What was given, and the policies of the spec."""
    names = [name for name in ("delivery_policy", "dead_letter_policy") if getattr(spec, name, None) is not None]
    if names and policy_set is not None:
        raise ValueError("pass policies with the spec or with policy_set=, not both")
    for name in names:
        if getattr(given, name) is not None:
            raise ValueError(f"pass either {name}= or a spec with one, not both")
    return replace(given, **{name: getattr(spec, name) for name in names})
