"""Short ways to ask a store, for tests: a message's id is its value unless said otherwise."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Raw, json

from holdfast.commands import (
    Acquire,
    Acquired,
    Browse,
    Change,
    Changes,
    Claim,
    Count,
    Extend,
    Item,
    LeaseName,
    Move,
    Put,
    Puts,
    Read,
    Release,
    Renew,
    Settle,
    Stats,
    Write,
    Written,
)
from holdfast.commands.events import OLDEST
from holdfast.ids import new_id
from holdfast.records import Event, Lease, Message, State
from holdfast.stores import Store

JOBS = "jobs"
DICT = "settings"


def raw(value: object) -> Raw:
    return Raw(json.encode(value))


def item(message_id: str, value: object = None, **options: Any) -> Item:
    return Item(message_id, raw(message_id if value is None else value), **options)


def put(store: Store, *message_ids: str, queue: str = JOBS, **options: Any) -> Puts:
    return store.execute(Put(queue, [item(message_id, **options) for message_id in message_ids]))


def claim(
    store: Store, limit: int = 1, *, queue: str = JOBS, holder: str = "worker", lease_s: float | None = 30.0, **options: Any
) -> list[Message]:
    return store.execute(Claim(queue, holder, lease_s, limit, **options)).messages


def claim_one(store: Store, **options: Any) -> Message:
    """The one message that is there to be claimed."""
    messages = claim(store, **options)
    assert len(messages) == 1, f"one message was due, and {len(messages)} were handed out"
    return messages[0]


def drain(store: Store, queue: str = JOBS) -> list[str]:
    """The ids of everything that is due, in the order in which it is handed out."""
    return ids(claim(store, 10_000, queue=queue, take=True))


def settle(store: Store, messages: Sequence[Message], **options: Any) -> list[bool]:
    return store.execute(Settle([message.receipt for message in messages], **options)).held


def extend(store: Store, messages: Sequence[Message], lease_s: float | None = 30.0) -> list[bool]:
    return store.execute(Extend([message.receipt for message in messages], lease_s)).held


def move(store: Store, to: Any, queue: str = JOBS, **options: Any) -> list[str]:
    return store.execute(Move(queue, to, **options)).ids


def ids(messages: Iterable[Message]) -> list[str]:
    return [message.id for message in messages]


def value(message: Message) -> Any:
    return json.decode(message.value)


def browse(store: Store, state: State = "ready", queue: str = JOBS, **options: Any) -> list[Message]:
    return store.execute(Browse(queue, state=state, **options)).messages


def look(store: Store, message_id: str, queue: str = JOBS) -> Message | None:
    """The message as it stands in the store, whatever its state."""
    found = store.execute(Browse(queue, ids=[message_id])).messages
    return found[0] if found else None


def see(store: Store, message_id: str, queue: str = JOBS) -> Message:
    """The message as it stands in the store, which must have it."""
    message = look(store, message_id, queue)
    assert message is not None, f"message {message_id!r} is not in queue {queue!r}"
    return message


def stats(store: Store, queue: str = JOBS, **options: Any) -> Stats:
    return store.execute(Count(queue, **options))


def write(store: Store, key: str, value: object = None, *, dict: str = DICT, **options: Any) -> Written:
    """One change; a value is put unless `do` says otherwise."""
    options.setdefault("value", None if options.get("do", "put") != "put" else raw(value))
    return store.execute(Write(dict, [Change(key, **options)]))[0]


def read(store: Store, *keys: str, dict: str = DICT, **options: Any) -> dict[str, Any]:
    """Keys and values, by key or, with none, all of them."""
    entries = store.execute(Read(dict, keys=list(keys) or None, **options)).entries
    return {entry.key: json.decode(entry.value) for entry in entries}


def acquire(store: Store, key: str = "lock", *, lease_id: str = "one", holder: str = "me", **options: Any) -> Acquired:
    options.setdefault("dict", None)
    options.setdefault("lease_s", 30.0)
    return store.execute(Acquire(key=key, holder=holder, lease_id=lease_id, **options))


def grant(store: Store, key: str = "lock", *, lease_id: str = "one", **options: Any) -> Lease:
    """A lease that was free, and is ours now."""
    lease = acquire(store, key, lease_id=lease_id, **options).lease
    assert lease.lease_id == lease_id, f"lease {key!r} was free, and {lease.lease_id!r} holds it instead of {lease_id!r}"
    return lease


def token(store: Store) -> int:
    """A fresh token, higher than all before; nobody holds it any more."""
    lease = grant(store, "token", lease_id=new_id())
    assert release(store, lease)
    return lease.token


def is_seen(seen: Lease, lease: Lease) -> bool:
    """Whether what was seen is this lease; a store may hide its id from all but its holder."""
    return seen in (lease, lease.without_id())


def name(lease: Lease) -> LeaseName:
    return LeaseName(lease.dict, lease.key, lease.lease_id)


def renew(store: Store, lease: Lease, lease_s: float | None = 30.0) -> Lease | None:
    return store.execute(Renew([name(lease)], lease_s)).leases[0]


def release(store: Store, lease: Lease) -> bool:
    return store.execute(Release([name(lease)])).held[0]


def events(store: Store, topic: str = f"queue:{JOBS}", after: int = OLDEST) -> list[Event]:
    return store.execute(Changes(topic, after)).events


def event_names(store: Store, topic: str = f"queue:{JOBS}", after: int = OLDEST) -> list[str]:
    return [event.event for event in events(store, topic, after)]


def last_event(store: Store, topic: str = f"queue:{JOBS}") -> tuple[str, dict[str, Any]]:
    """The newest event of a topic, and its data."""
    found = events(store, topic)
    assert found, f"no event was written to {topic}"
    return found[-1].event, json.decode(found[-1].data)
