"""Holdfast, as the measurements use it."""

from pathlib import Path
from typing import Literal

from msgspec import Raw

from bench.measure import Rates, rates_of
from holdfast.commands import Claim, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store

Durability = Literal["power", "process"]

QUEUE = "jobs"
VALUE = b'{"to": "someone@example.com", "subject": "hello", "tries": 3}'
BATCH = 100
LEASE_S = 60.0


def open_file(path: Path, durability: Durability = "process") -> Store:
    """A store in a file whose queue exists."""
    store = connect(f"sqlite:///{path.absolute()}?durability={durability}")
    put(store)
    cycle(store)
    return store


def put(store: Store) -> None:
    store.execute(Put(QUEUE, [Item(new_id(), Raw(VALUE))]))


def cycle(store: Store) -> None:
    """Claim a message and acknowledge it."""
    message = store.execute(Claim(QUEUE, "bench", LEASE_S)).messages[0]
    store.execute(Settle([message.receipt]))


def put_batch(store: Store, count: int = BATCH) -> None:
    store.execute(Put(QUEUE, [Item(new_id(), Raw(VALUE)) for _ in range(count)]))


def cycle_batch(store: Store) -> None:
    messages = store.execute(Claim(QUEUE, "bench", LEASE_S, BATCH)).messages
    store.execute(Settle([message.receipt for message in messages]))


def singles(store: Store, puts: int, cycles: int) -> Rates:
    rates = rates_of("put", puts, lambda: put(store)) | rates_of("claim+ack", cycles, lambda: cycle(store))
    drain(store)
    return rates


def batches(store: Store, count: int) -> Rates:
    return rates_of("put", count, lambda: put_batch(store), BATCH) | rates_of("claim+ack", count, lambda: cycle_batch(store), BATCH)


def fill(store: Store, count: int) -> None:
    """Put `count` messages, fast."""
    while count > 0:
        put_batch(store, min(count, 1_000))
        count -= 1_000


def drain(store: Store) -> None:
    """Remove what is left."""
    while store.execute(Claim(QUEUE, "bench", limit=1_000, take=True)).messages:
        pass
