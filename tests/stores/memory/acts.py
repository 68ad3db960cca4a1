"""What the tests of the memory store do to it all the time."""

from typing import Any

from msgspec import Raw

from holdfast.commands import (
    Claim,
    Item,
    Put,
)
from holdfast.records import Message
from holdfast.stores.memory import MemoryStore

VALUE = Raw(b"1")


def put(store: MemoryStore, *ids: str, queue: str = "jobs", **options: Any) -> None:
    store.execute(Put(queue, [Item(message_id, VALUE, **options) for message_id in ids]))


def claim(store: MemoryStore, queue: str = "jobs", lease_s: float = 30.0, **options: Any) -> list[Message]:
    return store.execute(Claim(queue, "me", lease_s, **options)).messages


def anything(value: object) -> Any:
    return value
