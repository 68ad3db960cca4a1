"""Reads messages and entries by name, in as many pages as needed; each page is of one moment."""

from collections.abc import AsyncIterator, Sequence

from holdfast.commands import Browse, Read
from holdfast.records import Entry, Message
from holdfast.stores import AsyncStore


async def entries_of(store: AsyncStore, name: str, keys: Sequence[str]) -> AsyncIterator[list[Entry]]:
    """The entries of a dict under these keys, in this order."""
    more = True
    while more:
        page = await store.execute(Read(name, keys))
        yield page.entries
        more = page.more
        keys = keys[keys.index(page.entries[-1].key) + 1 :] if more else ()


async def messages_of(store: AsyncStore, queue: str, ids: Sequence[str]) -> AsyncIterator[list[Message]]:
    """The messages of a queue with these ids, in this order."""
    more = True
    while more:
        page = await store.execute(Browse(queue, ids=ids))
        yield page.messages
        more = page.more
        ids = ids[ids.index(page.messages[-1].id) + 1 :] if more else ()
