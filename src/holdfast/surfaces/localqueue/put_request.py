"""What a put asks for besides its value, and the message it makes."""

from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.arguments.put_options import PutOptions, make_item
from holdfast.clock import wall_s
from holdfast.codec import JSON, decode_key
from holdfast.commands import Item, Put
from holdfast.surfaces.localqueue.messages import QueueMessage
from holdfast.surfaces.localqueue.policies.acting import DeduplicationPolicy, DeliveryPolicy, OrderingPolicy


class ValueRefused(TypeError, ValueError):  # noqa: N818 - what happened, as in `holdfast.errors`
    """A value that would not come back equal."""


class Stored(NamedTuple):
    """What a put came to."""

    message: QueueMessage
    is_new: bool
    """False for the message of a dedupe key that was there already."""


class Destination(NamedTuple):
    """One of the queues that a put goes to, and the dedupe key there."""

    queue: str
    key: str | None


class PutRequest(Struct, frozen=True):
    """How a message is placed."""

    delay: float
    dedupe_key: str | None
    priority: int

    def check(self, ordering: OrderingPolicy, deduplication: DeduplicationPolicy, delivery: DeliveryPolicy) -> None:
        """Refuse what is bad, and what the policies do not allow."""
        if not self.delay >= 0:
            raise ValueError(f"delay cannot be negative, and is {self.delay}")
        self._check_key(deduplication, delivery)
        if isinstance(self.priority, bool) or not isinstance(self.priority, int):
            raise TypeError(f"priority must be an integer, and is {self.priority!r}")
        if self.priority < 0:
            raise ValueError(f"priority cannot be negative, and is {self.priority}")
        if self.priority and ordering.guarantee != "priority":
            raise ValueError("priority requires PriorityOrdering: give the queue ordering_policy=PriorityOrdering()")

    def _check_key(self, deduplication: DeduplicationPolicy, delivery: DeliveryPolicy) -> None:
        if self.dedupe_key is None:
            if getattr(delivery, "requires_dedupe_key", False):
                raise ValueError("dedupe_key is required by the active delivery_policy")
            return
        if not isinstance(self.dedupe_key, str):
            raise TypeError(f"dedupe_key must be a str, and is {self.dedupe_key!r}")
        if not self.dedupe_key:
            raise ValueError("dedupe_key cannot be empty")
        if not deduplication.accepts_dedupe_key:
            raise ValueError("dedupe_key is not supported by the active deduplication_policy")

    def keys(self, subscribers: tuple[str, ...]) -> list[str | None]:
        """The dedupe key for each queue that the message goes to."""
        if self.dedupe_key is None or not subscribers:
            return [self.dedupe_key] * max(1, len(subscribers))
        return [f"{self.dedupe_key}:{subscriber}" for subscriber in subscribers]

    def item(self, value: Any, key: str | None) -> Item:
        """What is sent to the store; a message of the key that is there already is kept as it is."""
        options: PutOptions = {"delay_s": self.delay, "priority": self.priority}
        if key is not None:
            options |= {"key": key, "if_present": "keep"}
        try:
            return make_item(value, JSON, options)
        except TypeError as error:
            raise ValueRefused(str(error)) from error


def placed(command: Put, value: Any) -> QueueMessage:
    """The message that a put made, just now."""
    (item,) = command.items
    now = wall_s()
    return QueueMessage(
        id=item.id,
        value=value,
        queue=command.queue,
        created_at=now,
        available_at=now + item.delay_s,
        dedupe_key=None if item.key is None else str(decode_key(item.key)),
        priority=item.priority,
    )
