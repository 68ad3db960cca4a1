"""What must hold on every store whose data was replaced by a backup of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from msgspec import Struct

from holdfast.commands import Changes
from holdfast.errors import Compacted, Refused
from holdfast.stores import Store
from holdfast.testing.conformance.asking import JOBS, claim, event_names, grant, put, read, release, settle, write

QUEUE = f"queue:{JOBS}"
Opening = Callable[[], Store]


class Lost(Struct):
    """What was handed out before the backup, and what was handed out after it and is forgotten."""

    seen: int
    """The newest event when the backup was made."""
    index: int
    """The newest event of all."""
    tokens: list[int]


@contextmanager
def opened(opening: Opening) -> Iterator[Store]:
    store = opening()
    try:
        yield store
    finally:
        store.close()


def work(store: Store, *names: str) -> list[int]:
    """Do what hands out tokens; answer them."""
    tokens = []
    for name in names:
        put(store, name)
        claims = claim(store)
        lease = grant(store, name, lease_id=name)
        written = write(store, "k", name, fence=claims[0].token).entry
        assert written is not None
        settle(store, claims)
        release(store, lease)
        tokens += [claims[0].token, lease.token, written.revision]
    return tokens


def newest(store: Store) -> int:
    return store.execute(Changes(QUEUE)).latest


def lose(opening: Opening, back_up: Callable[[], None]) -> Lost:
    """Work, make a backup, and work on; the store is closed when the backup is made, and again in the end."""
    with opened(opening) as store:
        work(store, "a", "b")
        seen = newest(store)
    back_up()
    with opened(opening) as store:
        tokens = work(store, "c", "d")
    with opened(opening) as store:
        tokens += work(store, "e", "f")
        return Lost(seen, newest(store), tokens)


def check_restored(opening: Opening, lost: Lost) -> None:
    """Check the store after the backup has taken its place."""
    with opened(opening) as store:
        assert read(store) == {"k": "b"}, "control: it is the backup"
        check_stale(store, lost)
        with pytest.raises(Compacted):
            store.execute(Changes(QUEUE, lost.index))
        put(store, "first of the restored store")
        check_stale(store, lost)
        settle(store, claim(store))
        tokens = work(store, "g", "h")
        assert min(tokens) > max(lost.tokens), "a token went back"
        check_stale(store, lost)
        check_watches(store, lost)
    with opened(opening) as store:
        check_watches(store, lost)
        assert min(work(store, "i")) > max(tokens)


def check_stale(store: Store, lost: Lost) -> None:
    """Check that who was given a token after the backup gets nothing in, not even where no newer token has written."""
    for token in lost.tokens:
        with pytest.raises(Refused):
            write(store, "never fenced", "stale", fence=token)
    assert "never fenced" not in read(store)


def check_watches(store: Store, lost: Lost) -> None:
    for index in (lost.index, *lost.tokens):
        with pytest.raises(Compacted):
            store.execute(Changes(QUEUE, index))
    assert event_names(store, after=lost.seen)[:3] == ["put", "claimed", "settled"], "a watch of before the backup goes on"


def check_reopened(opening: Opening) -> None:
    """Check that nobody is disturbed by a store that is only opened again and again."""
    indexes = []
    for name in ("a", "b", "c", "d"):
        with opened(opening) as store:
            work(store, name)
            indexes.append(newest(store))
    with opened(opening) as store:
        for place, index in enumerate(indexes, 1):
            assert event_names(store, after=index) == ["put", "claimed", "settled"] * (4 - place)
