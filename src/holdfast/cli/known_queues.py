"""Tells a queue that is empty from one that does not exist, whose name may be a slip of the pen."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from holdfast.cli.commands import NotFoundError
from holdfast.cli.opening import connected
from holdfast.commands import Names
from holdfast.errors import NotAllowed
from holdfast.stores import Store

if TYPE_CHECKING:
    from holdfast import Queue


@contextmanager
def known_queue(name: str, url: str | None) -> "Iterator[Queue[Any]]":
    """The queue, while the block runs; NotFoundError if there is none of this name."""
    from holdfast import Queue

    with connected(url) as client:
        refuse_unknown_queue(client.store, name)
        yield Queue.from_name(name, client=client)


def refuse_unknown_queue(store: Store, name: str) -> None:
    """Raise NotFoundError, with the names that are like it, if there is no queue of this name."""
    try:
        if store.execute(Names("queue", name, limit=1, exact=True)).settings:
            return
    except NotAllowed:
        return  # The token is for less than looking at the queue: the command itself says what it may do.
    close = get_close_matches(name, _names(store), 3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "`holdfast queue ls` shows those there are"
    raise NotFoundError(f"there is no queue {name!r} in {store.url}: {hint}")


def _names(store: Store) -> list[str]:
    try:
        return [one.name for one in store.execute(Names("queue")).settings]
    except NotAllowed:
        return []
