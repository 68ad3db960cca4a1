# Generated from src/holdfast/_async/handles/queue.py by tools/unasync.py; do not edit.
"""A queue: put work in, claim it under a lease, settle it."""

import builtins
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from holdfast._sync.flows.naming import all_named
from holdfast._sync.flows.putting import put_by
from holdfast._sync.handles.administration import QueueAdministration
from holdfast._sync.handles.consuming import QueueConsumer
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import refuse_unknown, show_options
from holdfast.arguments.put_options import ManyOptions, NamingOptions, PutOptions, SharedOptions, make_item, make_items
from holdfast.arguments.value_type import Value
from holdfast.arguments.where import Where, reach
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec, codec_for
from holdfast.commands import Put
from holdfast.results import MessageId
from holdfast.stores.caller_transaction import Connection

V = TypeVar("V")

CREATING = {"codec", "maxsize", "type", *Where.__annotations__}
"""The options of `create`."""


class WorkOptions(NamingOptions, SharedOptions, Where, total=False):
    """The options of `put_work` besides `max_attempts`."""

    timeout_s: float | None
    poll_interval_s: float
    connection: Connection | None


@show_options
class Queue(QueueConsumer[Value], QueueAdministration):
    """A queue of messages, first in first out within a priority, delivered at least once.

    A handle is only a name with a client and a type: making one touches nothing, and many may name the same queue. Every method takes
    `client=` or `base_url=`; without them the handle's own is used, else that of `HOLDFAST_URL`, else a SQLite file in the user's data
    folder. Where a call waits, `timeout_s=None` asks once, a number waits so long in all, and `math.inf` for ever; wake-ups are pushed, and
    `poll_interval_s` is the most that a missed one can cost.
    """

    aio: ClassVar[Twin] = Twin()

    @overload
    @classmethod
    def from_name(cls, name: str, *, type: type[V], **where: Unpack[Where]) -> "Queue[V]": ...
    @overload
    @classmethod
    def from_name(cls, name: str, *, codec: Codec | None = None, **where: Unpack[Where]) -> "Queue[Any]": ...
    @classmethod
    def from_name(cls, name: str, *, type: Any = None, codec: Codec | None = None, **where: Unpack[Where]) -> "Queue[Any]":
        """Make a handle; nothing is asked of the store, and the first put creates the queue.

        With `type=` (a msgspec Struct, dataclass, pydantic model, …) values must be of it and come back as it; `codec=` is for another
        encoding altogether.
        """
        return Queue(name, codec=codec_for(type, codec), **where)

    @overload
    @classmethod
    def create(cls, name: str, *, type: type[V], maxsize: int | UnsetType | None = UNSET, **where: Unpack[Where]) -> "Queue[V]": ...
    @overload
    @classmethod
    def create(
        cls, name: str, *, codec: Codec | None = None, maxsize: int | UnsetType | None = UNSET, **where: Unpack[Where]
    ) -> "Queue[Any]": ...
    @classmethod
    def create(
        cls, name: str, *, type: Any = None, codec: Codec | None = None, maxsize: int | UnsetType | None = UNSET, **where: Unpack[Where]
    ) -> "Queue[Any]":
        """Create the queue if it is not there, and make a handle. Never empties it.

        `maxsize` limits how many messages may be ready, those that are delayed too, but not those whose lease has ended until a claim
        finds them; None lifts the limit, and left out it stays as it is.
        For `type=` and `codec=` see `from_name`.
        """
        refuse_unknown("create", where, CREATING)
        queue = Queue[Any](name, codec=codec_for(type, codec), **where)
        queue.configure(maxsize=maxsize)
        return queue

    def put(
        self,
        value: Value,
        *,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        connection: Connection | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[PutOptions],
    ) -> MessageId:
        """Add a message; return its id, whose `created` is false where the put met a message that was there already.

        `PutOptions` explains the options. A `key` names at most one living message. When there is one, `if_ready` says what happens while
        it waits (`update` it, the default, `keep` it, `postpone` it, or `reject` the put with `KeyInFlight`) and `if_leased` while it is
        claimed (`update`, `keep`, `reject`, or `buffer`, the default: the new value waits behind it); `if_present` sets both. With
        `unique_for_s` a key is put once in that time. A put under an `id` that exists changes nothing, and `created` is false; if the
        value is another, `if_id="reject"` raises `IdTaken`. Into a full queue it waits for room as `timeout_s` says, then raises
        `QueueFull`.

        With a `connection` of yours to the same database the put is part of its open transaction: it is committed, or vanishes, with it.
        """
        item = make_item(value, self._codec, options)
        puts = put_by(self._reach(client, base_url), Put(self.name, [item]), timeout_s, poll_interval_s, connection)
        return MessageId(puts.ids[0], created=puts.created[0])

    def put_many(
        self,
        values: Iterable[Value],
        *,
        keys: Iterable[Hashable | None] | None = None,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        connection: Connection | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[ManyOptions],
    ) -> builtins.list[MessageId]:
        """Add messages, all or none, in this order; the options of `put` hold for each of them, and `keys` gives each its own key."""
        items = make_items(values, self._codec, options, keys)
        if not items:
            return []
        puts = put_by(self._reach(client, base_url), Put(self.name, items), timeout_s, poll_interval_s, connection)
        return [MessageId(message_id, created=created) for message_id, created in zip(puts.ids, puts.created, strict=True)]

    def put_work(self, value: Value, *, max_attempts: int | None = 3, **options: Unpack[WorkOptions]) -> MessageId:
        """Add a message with a retry budget; otherwise as `put`, with the same options."""
        return self.put(value, max_attempts=max_attempts, **options)

    @classmethod
    def list(cls, *, prefix: str = "", **where: Unpack[Where]) -> "builtins.list[Queue[Any]]":
        """Make a handle for each queue there is, in order of their names."""
        return [Queue(one.name, **where) for one in all_named(reach(**where).store, "queue", prefix)]
