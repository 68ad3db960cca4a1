"""What the tests of SQLite files ask of a store, in their own process and in others."""

from contextlib import closing
from pathlib import Path

from msgspec import Raw

from holdfast.commands import Browse, Claim, Item, Put, Settle
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.stores.sqlite.store import SqliteStore

OPENED = """
import os, sqlite3, threading, uuid
from msgspec import Raw
from holdfast.commands import Browse, Change, Claim, Count, Item, Move, Put, Read, Settle, Together, Write
from holdfast.connect import connect

store = connect(f"sqlite:///{path}")

def put(*ids):
    return store.execute(Put("jobs", [Item(id, Raw(b"1")) for id in ids])).created

def waiting():
    return [message.id for message in store.execute(Browse("jobs", limit=10_000)).messages]

def claim(lease_s=60.0):
    return [message.id for message in store.execute(Claim("jobs", lease_s=lease_s)).messages]

claimed = []

def claim_one():
    claimed.extend(store.execute(Claim("jobs", lease_s=60.0)).messages)
    return claimed[-1].id

def ack():
    return store.execute(Settle([claimed.pop().receipt])).held[0]
"""
"""The setup of a program that shares the store; it answers calls of the functions."""


def put(store: Store, *ids: str) -> None:
    store.execute(Put("jobs", [Item(name, Raw(b"1")) for name in ids]))


def waiting(store: Store) -> list[str]:
    return [message.id for message in store.execute(Browse("jobs", limit=10_000)).messages]


def waiting_in(path: Path) -> list[str]:
    """As whoever opens the file now sees it."""
    with closing(SqliteStore(path)) as store:
        return waiting(store)


def claim(store: Store, limit: int = 1, lease_s: float = 60.0) -> list[Message]:
    return store.execute(Claim("jobs", lease_s=lease_s, limit=limit)).messages


def ack(store: Store, messages: list[Message]) -> list[bool]:
    return store.execute(Settle([message.receipt for message in messages])).held


def bytes_of(path: Path) -> bytes:
    """The database with its log, should there be one."""
    log = path.with_name(path.name + "-wal")
    return path.read_bytes() + (log.read_bytes() if log.exists() else b"")
