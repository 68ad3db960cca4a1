"""PersistentQueue: a queue with the methods of `queue.Queue`, and messages that can be leased, released and dead-lettered."""

import math
from inspect import getattr_static
from queue import Empty
from typing import Any, Generic, Self, TypeVar

from holdfast.surfaces.localqueue.administering import AdministeredQueue, check_duration
from holdfast.surfaces.localqueue.backends import Target
from holdfast.surfaces.localqueue.messages import QueueMessage
from holdfast.surfaces.localqueue.names import subscriber_queue_name
from holdfast.surfaces.localqueue.placing import Placing
from holdfast.surfaces.localqueue.specs import QueueSpec

T = TypeVar("T")


class PersistentQueue(AdministeredQueue, Generic[T]):
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
        item: T,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
        delay: float = 0.0,
        priority: int = 0,
        *,
        dedupe_key: str | None = None,
    ) -> QueueMessage:
        """Add an item; a put that meets a living message of its dedupe key answers that one.

        With subscribers each gets a message, all or none, and the first is answered. Into a full queue it waits as `block` and `timeout`
        say, then raises `queue.Full`.
        """
        placing = Placing(delay=delay, dedupe_key=dedupe_key, priority=priority)
        placing.check(self.ordering_policy, self.deduplication_policy, self.delivery_policy)
        timeout_s = _patience(block=block and self.backpressure.overflow != "reject", timeout=timeout)
        subscribers = self._subscribers(fanout=True)
        names = [subscriber_queue_name(self.name, one) for one in subscribers] or [self.name]
        targets = [Target(name, key) for name, key in zip(names, placing.keys(subscribers), strict=True)]
        stored = self.backend.put(item, placing, targets, self.backpressure, timeout_s)
        for message, is_new in stored:
            if is_new:
                self._tell(message)
        return stored[0].message

    def put_nowait(self, item: T) -> QueueMessage:
        """Add an item, or raise `queue.Full` at once."""
        return self.put(item, block=False)

    def get(
        self,
        block: bool = True,  # noqa: FBT001, FBT002 - as documented
        timeout: float | None = None,
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
        leased_by: str | None = None,
    ) -> QueueMessage:
        """Lease the next message: nobody else gets it for `lease_timeout` seconds. Raises `queue.Empty` as `block` and `timeout` say."""
        message = self.backend.claim(self.lease_timeout, leased_by, _patience(block=block, timeout=timeout), takes=self.takes)
        if message is None:
            raise Empty
        return message

    def ack(self, message: QueueMessage) -> bool:
        """Remove a message: it is done. False if it is no longer held, or without a token, if somebody holds it."""
        return self.backend.ack(message)

    def release(self, message: QueueMessage, delay: float = 0.0, error: BaseException | str | None = None) -> bool:
        """Give a message back, to the back of the line, not before `delay`, and keep the error. False as for `ack`."""
        check_duration(delay, "delay")
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
