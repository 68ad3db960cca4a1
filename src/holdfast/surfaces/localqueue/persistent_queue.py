"""PersistentQueue: a queue with the methods of `queue.Queue`, and messages that can be leased, released and dead-lettered."""

import math
from inspect import getattr_static
from queue import Empty
from typing import Any, Generic, Self

from holdfast.arguments.value_type import Value
from holdfast.clock import wall_s
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats
from holdfast.surfaces.localqueue.policies.acting import UNBOUNDED
from holdfast.surfaces.localqueue.policies.bundles import POLICIES, QueuePolicySet
from holdfast.surfaces.localqueue.put_request import Destination, PutRequest
from holdfast.surfaces.localqueue.queue_config import ConfiguredQueue
from holdfast.surfaces.localqueue.queue_names import subscriber_queue_name
from holdfast.surfaces.localqueue.queue_spec import QueueSpec


class PersistentQueue(ConfiguredQueue, Generic[Value]):
    """A queue by name in a store, with the policies it was given.

    Without `store` and `store_path` it is in the store of `HOLDFAST_URL`, else in a SQLite file in the user's data folder. `store` may also
    be a URL, a `ControlPlaneClient`, or an object of your own with the methods of `QueueStore`. Nothing is opened before the first call.
    """

    @classmethod
    def from_spec(cls, spec: QueueSpec, **kwargs: Any) -> Self:
        """Make the queue that a spec describes."""
        return cls(spec=spec, **kwargs)

    def put(
        self,
        item: Value,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        delay: float = 0.0,
        priority: int = 0,
        *,
        dedupe_key: str | None = None,
    ) -> QueueMessage:
        """Add an item; a put that meets a living message of its dedupe key returns that one.

        With subscribers each gets a message, all or none, and the first is returned. Into a full queue it waits as `block` and `timeout`
        say, then raises `queue.Full`.
        """
        request = PutRequest(delay=delay, dedupe_key=dedupe_key, priority=priority)
        request.check(self.ordering_policy, self.deduplication_policy, self.delivery_policy)
        timeout_s = _patience(block=block and self.backpressure.overflow != "reject", timeout=timeout)
        subscribers = self._subscribers(fanout=True)
        names = [subscriber_queue_name(self.name, one) for one in subscribers] or [self.name]
        targets = [Destination(name, key) for name, key in zip(names, request.keys(subscribers), strict=True)]
        stored = self.backend.put(item, request, targets, self.backpressure, timeout_s)
        for message, is_new in stored:
            if is_new:
                self._tell(message)
        return stored[0].message

    def put_nowait(self, item: Value) -> QueueMessage:
        """Add an item, or raise `queue.Full` at once."""
        return self.put(item, block=False)

    def get(
        self,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        leased_by: str | None = None,
    ) -> Value:
        """The next value, for `task_done` to acknowledge; delivered at most once, it is acknowledged already."""
        message = self.get_message(block, timeout, leased_by=leased_by)
        if not self.takes:
            self._unfinished.add(message)
        value: Value = message.value
        return value

    def get_nowait(self) -> Value:
        """The next value, or `queue.Empty` at once."""
        return self.get(block=False)

    def get_message(
        self,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        leased_by: str | None = None,
    ) -> QueueMessage:
        """Lease the next message: no one else gets it for `lease_timeout` seconds. Raises `queue.Empty` as `block` and `timeout` say."""
        message = self.backend.claim(self.lease_timeout, leased_by, _patience(block=block, timeout=timeout), takes=self.takes)
        if message is None:
            raise Empty
        return message

    def ack(self, message: QueueMessage) -> bool:
        """Remove a message: it is done. False if it is no longer held, or without a token, if it is claimed."""
        return self.backend.ack(message)

    def release(self, message: QueueMessage, delay: float = 0.0, error: BaseException | str | None = None) -> bool:
        """Give a message back, to the back of the line, not before `delay`, and keep the error. False as for `ack`."""
        _check_duration(delay, "delay")
        return self.backend.release(message, delay, error)

    def dead_letter(self, message: QueueMessage, error: BaseException | str | None = None) -> bool:
        """Take a message out of delivery, to be looked at, and keep the error. False as for `ack`."""
        return self.backend.dead_letter(message, error)

    def task_done(self) -> None:
        """Acknowledge the oldest unfinished message that this thread got with `get`, or if it has none, that any thread got.

        ValueError where none is unfinished.
        """
        message = self._unfinished.pop()
        try:
            self.ack(message)
        finally:
            self._unfinished.done()

    def join(self) -> None:
        """Wait until everything is finished that threads of this process got from this object with `get`."""
        self._unfinished.join()

    def inspect(self, message_id: str) -> QueueMessage | None:
        """Look at a message without touching it."""
        return self._store.get(self.name, message_id)

    def qsize(self) -> int:
        """How many messages are due."""
        return self._store.qsize(self.name, now=wall_s())

    def empty(self) -> bool:
        """Whether none is due."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Whether a put would have to wait."""
        return self.backpressure != UNBOUNDED and self.backpressure.is_full(qsize=self.qsize())

    def stats(self) -> QueueStats:
        """How many messages are where, who holds them, and what workers did."""
        return self._store.stats(self.name, now=wall_s())

    def record_worker_heartbeat(self, worker_id: str) -> None:
        """Note that a worker is alive, now."""
        if not worker_id:
            raise ValueError("worker_id cannot be empty")
        self._store.record_worker_heartbeat(self.name, worker_id, now=wall_s())

    def dead_letters(self, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters, the longest dead first."""
        if limit is not None and limit < 0:
            raise ValueError(f"limit cannot be negative, and is {limit}")
        return self._store.dead_letters(self.name, limit=limit)

    def requeue_dead(self, message: QueueMessage, delay: float = 0.0) -> bool:
        """Give a dead letter another chance: the same id, the back of the line, a fresh budget.

        False if it is not dead, or stays dead because newer work of its key waits or is being done.
        """
        _check_duration(delay, "delay")
        return self.backend.requeue_dead(message.id, delay)

    def prune_dead_letters(self, older_than: float) -> int:
        """Remove what has been dead for longer than so many seconds; return how many."""
        _check_duration(older_than, "older_than")
        return self.backend.prune_dead_letters(older_than)

    def count_dead_letters_older_than(self, older_than: float) -> int:
        """How many a prune would remove."""
        _check_duration(older_than, "older_than")
        return self.backend.count_dead_letters_older_than(older_than)

    def purge(self) -> int:
        """Remove every message, whatever its state; return how many."""
        return self._store.purge(self.name)

    def subscriber_queue(self, subscriber: str) -> "PersistentQueue[Value]":
        """The queue of one subscriber, with this queue's policies."""
        own = ("semantics", "routing_policy", "subscription_policy")
        policies = QueuePolicySet(**{name: getattr(self, name) for name in POLICIES if name not in own})
        name = self.subscriber_queue_name(subscriber)
        return PersistentQueue(name, store=self.store, retry_defaults=self.retry_defaults, policy_set=policies)

    def subscriber_queue_name(self, subscriber: str) -> str:
        """The name of a subscriber's queue."""
        known = self._subscribers(fanout=False)
        if not known:
            raise ValueError(f"queue {self.name!r} does not have configured subscribers")
        if subscriber not in known:
            raise ValueError(f"unknown subscriber {subscriber!r}: queue {self.name!r} has {', '.join(known)}")
        return subscriber_queue_name(self.name, subscriber)

    def overrides(self, method: str) -> bool:
        """Whether a subclass, or this object, has a method of its own in place of ours."""
        return getattr_static(self, method) is not getattr_static(PersistentQueue, method)

    def _subscribers(self, *, fanout: bool) -> tuple[str, ...]:
        """The subscribers; with `fanout` only where messages are routed to them."""
        if fanout and not self.routing_policy.fanout:
            return ()
        subscribers: tuple[str, ...] = getattr(self.subscription_policy, "subscribers", ())
        if fanout and not subscribers:
            raise ValueError("publish-subscribe routing requires configured subscribers: give subscription_policy=")
        return subscribers

    def _tell(self, message: QueueMessage) -> None:
        if self.notification_policy.notifies_on_put:
            self.notification_policy.notify(message)
        if self.dispatch_policy.dispatches_on_put:
            self.dispatch_policy.dispatch(message)


def _patience(*, block: bool, timeout: float | None) -> float | None:
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"'timeout' must be a non-negative number, and is {timeout}")
    if not block:
        return None
    return math.inf if timeout is None else timeout


def _check_duration(seconds: float, what: str) -> None:
    """Refuse a negative number of seconds."""
    if not seconds >= 0:
        raise ValueError(f"{what} cannot be negative, and is {seconds}")
