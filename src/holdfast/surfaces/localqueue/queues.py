"""PersistentQueue: a queue with the methods of `queue.Queue`, and messages that can be leased, released and dead-lettered."""

import math
from collections.abc import Mapping
from itertools import islice
from os import PathLike
from queue import Empty
from typing import Any, Generic, TypeVar

from holdfast import Dict
from holdfast._sync.flows import browsing
from holdfast._sync.flows.claiming import claim_since
from holdfast._sync.flows.putting import put_together, wait_for_room
from holdfast.client import ControlPlaneClient
from holdfast.clock import wall_us
from holdfast.codec import check_name, encode_key
from holdfast.commands import Browse, Change, Claim, Clear, Configure, Count, Filter, Move, Put, Settle, Together, Write
from holdfast.errors import ClaimLost
from holdfast.records import Receipt
from holdfast.surfaces.localqueue.config import PersistentWorkerConfig
from holdfast.surfaces.localqueue.hooks import DispatchPolicy, NotificationPolicy
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats, claimed, counted, error_text, looked_at
from holdfast.surfaces.localqueue.placing import Placing, placed
from holdfast.surfaces.localqueue.policies import (
    LOCAL_QUEUE_PLACEMENT,
    REMOTE_QUEUE_PLACEMENT,
    AcknowledgementPolicy,
    BackpressureStrategy,
    BoundedBackpressure,
    ConsumptionPolicy,
    DeadLetterPolicy,
    DeduplicationPolicy,
    DeliveryPolicy,
    LeasePolicy,
    LocalityPolicy,
    OrderingPolicy,
    QueueSemantics,
    RejectingBackpressure,
    RoutingPolicy,
    SubscriptionPolicy,
)
from holdfast.surfaces.localqueue.policysets import QueuePolicySet, resolve
from holdfast.surfaces.localqueue.specs import QueueSpec, check_retries
from holdfast.surfaces.localqueue.stores import QueueStore, store_of
from holdfast.surfaces.localqueue.unfinished import Unfinished

T = TypeVar("T")

WORKERS = "localqueue-workers"
"""The dict of what workers did and when they were seen, by queue."""

POLL_S = 1.0
"""How much a missed wake-up can cost a `get` or a `put`."""


class PersistentQueue(Generic[T]):
    """A queue by name in a store, with the policies it was given.

    Without `store` and `store_path` it is in the store of `HOLDFAST_URL`, else in a SQLite file in the user's data folder. `store` may also
    be a URL or a `ControlPlaneClient`. Nothing is opened before the first call.
    """

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
        if name is None and spec is None:
            raise ValueError("pass either name= or spec=")
        if maxsize < 0:
            raise ValueError(f"maxsize cannot be negative, and is {maxsize}")
        self.name = queue_name(name if name is not None or spec is None else spec.name)
        self.store = store_of(store, store_path)
        self._spec = spec
        if spec is not None:
            delivery_policy = _only(delivery_policy, spec.delivery_policy, "delivery_policy")
            dead_letter_policy = _only(dead_letter_policy, spec.dead_letter_policy, "dead_letter_policy")
        self.retry_defaults = check_retries(spec.retry_kwargs if retry_defaults is None and spec is not None else retry_defaults)
        policies = resolve(
            {
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
            },
            policy_set,
            REMOTE_QUEUE_PLACEMENT if self.store.is_remote else LOCAL_QUEUE_PLACEMENT,
            lease_timeout,
            maxsize,
        )
        self.semantics = policies.semantics
        self.locality_policy = policies.locality_policy
        self.lease_policy = policies.lease_policy
        self.acknowledgement_policy = policies.acknowledgement_policy
        self.dead_letter_policy = policies.dead_letter_policy
        self.deduplication_policy = policies.deduplication_policy
        self.delivery_policy = policies.delivery_policy
        self.consumption_policy = policies.consumption_policy
        self.dispatch_policy = policies.dispatch_policy
        self.notification_policy = policies.notification_policy
        self.ordering_policy = policies.ordering_policy
        self.routing_policy = policies.routing_policy
        self.subscription_policy = policies.subscription_policy
        self.backpressure = policies.backpressure
        self.lease_timeout = policies.lease_policy.timeout
        self.maxsize = policies.backpressure.maxsize
        self._unfinished = Unfinished()
        self._is_bounded = self.maxsize == 0

    @classmethod
    def from_spec(cls, spec: QueueSpec, **kwargs: Any) -> "PersistentQueue[Any]":
        """Make the queue that a spec describes."""
        return PersistentQueue(spec=spec, **kwargs)

    def build_worker_config(self, **overrides: Any) -> PersistentWorkerConfig:
        """Make the configuration of workers that the spec, or else the retry defaults, describe."""
        if self._spec is not None:
            return self._spec.build_worker_config(**overrides)
        return PersistentWorkerConfig(**self.retry_defaults).with_overrides(**overrides)

    def put(
        self,
        item: T,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        *,
        delay: float = 0.0,
        dedupe_key: str | None = None,
        priority: int = 0,
    ) -> QueueMessage:
        """Add an item; a put that meets a living message of its dedupe key answers that one.

        With subscribers each gets a message, all or none, and the first is answered. Into a full queue it waits as `block` and `timeout`
        say, then raises `queue.Full`. Moments of a new message are of this machine's clock.
        """
        placing = Placing(delay=delay, dedupe_key=dedupe_key, priority=priority)
        placing.check(self.ordering_policy, self.deduplication_policy, self.delivery_policy)
        timeout_s = _patience(block=block and self.backpressure.overflow != "reject", timeout=timeout)
        subscribers = self._subscribers(fanout=True)
        targets = [subscriber_queue_name(self.name, one) for one in subscribers] or [self.name]
        commands = [Put(queue, [placing.item(item, key)]) for queue, key in zip(targets, placing.keys(subscribers), strict=True)]
        store = self.client.store
        self._bound(targets)
        if not isinstance(self.backpressure, BoundedBackpressure | RejectingBackpressure):
            wait_for_room(store, self.name, lambda size: self.backpressure.is_full(qsize=size), timeout_s, POLL_S)
        puts = put_together(store, commands, timeout_s, POLL_S)
        messages = [
            placed(command, item) if answer.created[0] else self._look(command.queue, answer.ids[0]) or placed(command, item)
            for command, answer in zip(commands, puts, strict=True)
        ]
        for message in messages:
            self._tell(message)
        return messages[0]

    def put_nowait(self, item: T) -> QueueMessage:
        """Add an item, or raise `queue.Full` at once."""
        return self.put(item, block=False)

    def get(
        self,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        *,
        leased_by: str | None = None,
    ) -> T:
        """The next value, for `task_done` to acknowledge; delivered at most once, it is acknowledged already."""
        message = self.get_message(block, timeout, leased_by=leased_by)
        if not self.takes:
            self._unfinished.add(message)
        value: T = message.value
        return value

    def get_nowait(self) -> T:
        """The next value, or `queue.Empty` at once."""
        return self.get(block=False)

    def get_message(
        self,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        *,
        leased_by: str | None = None,
    ) -> QueueMessage:
        """Lease the next message: nobody else gets it for `lease_timeout` seconds. Raises `queue.Empty` as `block` and `timeout` say."""
        store = self.client.store
        messages, _ = claim_since(store, self.claim_command(leased_by), _patience(block=block, timeout=timeout), POLL_S)
        if not messages:
            raise Empty
        if leased_by and self.takes:
            self._workers.increment((self.name, "leases", leased_by))
        return claimed(messages[0], store.wall_offset_us())

    def inspect(self, message_id: str) -> QueueMessage | None:
        """Look at a message without touching it."""
        return self._look(self.name, message_id)

    def ack(self, message: QueueMessage) -> bool:
        """Remove a message: it is done. False if it is no longer held, or without a token, if somebody holds it."""
        if message.token is not None:
            return self._settle(message)
        return self._move(Move(self.name, "gone", [message.id]))

    def release(self, message: QueueMessage, *, delay: float = 0.0, error: BaseException | str | None = None) -> bool:
        """Give a message back, to the back of the line, not before `delay`, and keep the error. False as for `ack`."""
        _check_duration(delay, "delay")
        if message.token is not None:
            return self._settle(message, to="ready", delay_s=delay, error=error_text(error))
        if error is not None:
            # A redrive keeps no error, a burial does.
            self.dead_letter(message, error=error)
        return self._move(Move(self.name, "ready", [message.id], delay_s=delay))

    def dead_letter(self, message: QueueMessage, *, error: BaseException | str | None = None) -> bool:
        """Take a message out of delivery, to be looked at, and keep the error. False as for `ack`."""
        if message.token is not None:
            return self._settle(message, to="dead", error=error_text(error), counts=True)
        return self._move(Move(self.name, "dead", [message.id], error=error_text(error)))

    def task_done(self) -> None:
        """Acknowledge the oldest message that this thread got with `get` and has not finished; ValueError where there is none."""
        message = self._unfinished.pop()
        try:
            self.ack(message)
        finally:
            self._unfinished.done()

    def join(self) -> None:
        """Wait until everything is finished that threads of this process got from this object with `get`."""
        self._unfinished.join()

    def qsize(self) -> int:
        """How many messages are due."""
        return self.stats_now().ready

    def empty(self) -> bool:
        """Whether none is due."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Whether a put would have to wait."""
        stats = self.client.store.execute(Count(self.name))
        return self.backpressure.is_full(qsize=stats.ready + stats.delayed)

    def stats(self) -> QueueStats:
        """How many messages are where, who holds them, and what workers did."""
        return self.stats_now(dict(self._workers.items(prefix=(self.name,))))

    def stats_now(self, workers: Mapping[Any, Any] | None = None) -> QueueStats:
        """The sizes, with what is known of workers."""
        known: dict[str, dict[str, Any]] = {"leases": {}, "seen": {}}
        for (_, what, worker_id), value in (workers or {}).items():
            known[what][worker_id] = value
        return counted(self.client.store.execute(Count(self.name)), known["leases"], known["seen"])

    def record_worker_heartbeat(self, worker_id: str) -> None:
        """Note that a worker is alive, now."""
        if not worker_id:
            raise ValueError("worker_id cannot be empty")
        self._workers.put((self.name, "seen", worker_id), wall_us() / 1_000_000)

    def dead_letters(self, *, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters, the longest dead first."""
        if limit is not None and limit < 0:
            raise ValueError(f"limit cannot be negative, and is {limit}")
        store = self.client.store
        offset_us = store.wall_offset_us()
        pages = browsing.pages(store, self.name, "dead")
        dead = (looked_at(message, page.now, offset_us) for page in pages for message in page.messages)
        return list(islice(dead, limit))

    def requeue_dead(self, message: QueueMessage, *, delay: float = 0.0) -> bool:
        """Give a dead letter another chance: the same id, the back of the line, a fresh budget. False if it is not dead."""
        _check_duration(delay, "delay")
        found = self._look(self.name, message.id)
        return found is not None and found.state == "dead" and self._move(Move(self.name, "ready", [message.id], delay_s=delay))

    def prune_dead_letters(self, *, older_than: float) -> int:
        """Remove what has been dead for longer than so many seconds; answer how many."""
        _check_duration(older_than, "older_than")
        return browsing.move_all(self.client.store, Move(self.name, "gone", None, "dead", Filter(older_than)))

    def count_dead_letters_older_than(self, *, older_than: float) -> int:
        """How many a prune would remove."""
        _check_duration(older_than, "older_than")
        return sum(len(page.messages) for page in browsing.pages(self.client.store, self.name, "dead", Filter(older_than)))

    def purge(self) -> int:
        """Remove every message, whatever its state; answer how many."""
        return self.client.store.execute(Clear("queue", self.name))

    def subscriber_queue(self, subscriber: str) -> "PersistentQueue[T]":
        """The queue of one subscriber, with this queue's policies."""
        return PersistentQueue(
            self.subscriber_queue_name(subscriber),
            store=self.store,
            lease_policy=self.lease_policy,
            acknowledgement_policy=self.acknowledgement_policy,
            dead_letter_policy=self.dead_letter_policy,
            deduplication_policy=self.deduplication_policy,
            retry_defaults=self.retry_defaults,
            locality_policy=self.locality_policy,
            consumption_policy=self.consumption_policy,
            delivery_policy=self.delivery_policy,
            dispatch_policy=self.dispatch_policy,
            notification_policy=self.notification_policy,
            ordering_policy=self.ordering_policy,
            backpressure=self.backpressure,
        )

    def subscriber_queue_name(self, subscriber: str) -> str:
        """The name of a subscriber's queue."""
        known = self._subscribers(fanout=False)
        if not known:
            raise ValueError(f"queue {self.name!r} does not have configured subscribers")
        if subscriber not in known:
            raise ValueError(f"unknown subscriber {subscriber!r}: queue {self.name!r} has {', '.join(known)}")
        return subscriber_queue_name(self.name, subscriber)

    @property
    def client(self) -> ControlPlaneClient:
        """What reaches the store."""
        return self.store.client

    @property
    def takes(self) -> bool:
        """Whether a message is removed by the step that hands it out."""
        return self.delivery_policy.ack_timing == "before-delivery"

    def claim_command(self, leased_by: str | None = None, max_attempts: int | None = None) -> Claim:
        """What asks for the next message; one whose lease ends goes to the back."""
        return Claim(self.name, leased_by or "", float(self.lease_timeout), take=self.takes, expired_to="back", max_attempts=max_attempts)

    def __repr__(self) -> str:
        return f"PersistentQueue({self.name!r})"

    @property
    def _workers(self) -> Dict[Any]:
        return Dict.from_name(WORKERS, client=self.client)

    def _subscribers(self, *, fanout: bool) -> tuple[str, ...]:
        """The subscribers; with `fanout` only where messages are routed to them."""
        if fanout and not self.routing_policy.fanout:
            return ()
        subscribers: tuple[str, ...] = getattr(self.subscription_policy, "subscribers", ())
        if fanout and not subscribers:
            raise ValueError("publish-subscribe routing requires configured subscribers: give subscription_policy=")
        return subscribers

    def _bound(self, queues: list[str]) -> None:
        """Have the store keep the limit, for producers of all processes."""
        if self._is_bounded:
            return
        for queue in queues:
            self.client.store.execute(Configure("queue", queue, maxsize=self.maxsize))
        self._is_bounded = True

    def _tell(self, message: QueueMessage) -> None:
        if self.notification_policy.notifies_on_put:
            self.notification_policy.notify(message)
        if self.dispatch_policy.dispatches_on_put:
            self.dispatch_policy.dispatch(message)

    def _look(self, queue: str, message_id: str) -> QueueMessage | None:
        store = self.client.store
        page = store.execute(Browse(queue, ids=[message_id]))
        return looked_at(page.messages[0], page.now, store.wall_offset_us()) if page.messages else None

    def _settle(self, message: QueueMessage, **how: Any) -> bool:
        """End a lease; that of a named worker is counted in the same step."""
        command = Settle([Receipt(self.name, message.id, message.token or 0)], **how)
        if not message.leased_by:
            return self.client.store.execute(command).held[0]
        counted = Change(encode_key((self.name, "leases", message.leased_by)), do="increment", by=1)
        try:
            self.client.store.execute(Together([command, Write(WORKERS, [counted])]))
        except ClaimLost:
            return False
        return True

    def _move(self, command: Move) -> bool:
        return bool(self.client.store.execute(command).ids)


def subscriber_queue_name(queue_name: str, subscriber: str) -> str:
    """The name of the queue of a subscriber: `events.billing`."""
    if not subscriber:
        raise ValueError("subscriber cannot be empty")
    return f"{queue_name}.{subscriber}"


def queue_name(name: str | None) -> str:
    """The name, refused where it is empty or has a colon, which stands in names that are not queues of users."""
    if not name or ":" in name:
        raise ValueError(f"a queue name cannot be empty or contain ':', and is {name!r}")
    return check_name(name, "queue")


def _only(explicit: Any, of_spec: Any, name: str) -> Any:
    if explicit is not None and of_spec is not None:
        raise ValueError(f"pass either {name}= or a spec with one, not both")
    return of_spec if explicit is None else explicit


def _patience(*, block: bool, timeout: float | None) -> float | None:
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"'timeout' must be a non-negative number, and is {timeout}")
    if not block:
        return None
    return math.inf if timeout is None else timeout


def _check_duration(seconds: float, what: str) -> None:
    if not seconds >= 0:
        raise ValueError(f"{what} cannot be negative, and is {seconds}")
