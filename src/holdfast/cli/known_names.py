"""Tells a queue or dict that is empty from one that does not exist, whose name may be a slip of the pen."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

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
        refuse_unknown(client.store, "queue", name)
        yield Queue.from_name(name, client=client)


def refuse_unknown(store: Store, kind: Literal["queue", "dict"], name: str) -> None:
    """Raise NotFoundError, with the names that are like it, if there is no queue or dict of this name."""
    try:
        if store.execute(Names(kind, name, limit=1, exact=True)).settings:
            return
    except NotAllowed:
        return  # The token is for less than looking at it: the command itself says what it may do.
    close = get_close_matches(name, _names(store, kind), 3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"`holdfast {kind} ls` shows those there are"
    raise NotFoundError(f"there is no {kind} {name!r} in {store.url}: {hint}")


def _names(store: Store, kind: Literal["queue", "dict"]) -> list[str]:
    try:
        return [one.name for one in store.execute(Names(kind)).settings]
    except NotAllowed:
        return []
