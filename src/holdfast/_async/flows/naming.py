"""Lists names, and reads messages and entries by name, in as many pages as needed; each page is of one moment."""

from collections.abc import AsyncIterator, Sequence

from holdfast.commands import Browse, Names, Read
from holdfast.records import Entry, Message
from holdfast.records.policies import Kind, Settings
from holdfast.stores import AsyncStore


async def all_named(store: AsyncStore, kind: Kind, prefix: str = "") -> AsyncIterator[Settings]:
    """Every queue or dict whose name begins with the prefix, in the order of the store."""
    more, after = True, None
    while more:
        page = await store.execute(Names(kind, prefix, after))
        for one in page.settings:
            yield one
            after = one.name
        more = page.more


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
