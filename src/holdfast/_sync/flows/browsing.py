# Generated from src/holdfast/_async/flows/browsing.py by tools/unasync.py; do not edit.
"""Reads the messages of a queue page by page, and moves many of them."""

from collections.abc import Callable, Iterator, Sequence

from holdfast.commands import Browse, Browsed, Filter, Move, Moved, Settle
from holdfast.records import State
from holdfast.stores import Store

OnProgress = Callable[[int], object]
"""Is told how many were moved so far."""

PAGE = 1_000
EVERY = Filter()


def pages(store: Store, queue: str, state: State, which: Filter = EVERY) -> Iterator[Browsed]:
    """All messages of one state, in its order."""
    page = store.execute(Browse(queue, state=state, which=which, limit=PAGE))
    yield page
    while page.after is not None:
        page = store.execute(Browse(queue, state=state, which=which, after=page.after, limit=PAGE))
        yield page


def move_all(store: Store, move: Move, on_progress: OnProgress | None = None) -> Moved:
    """Move the messages that a move without limit names, a page at a time; tell after each how many were moved so far."""
    if move.ids is not None:
        return _move(store, move, move.ids, 0)
    all_moved = Moved([], {})
    for page in pages(store, move.queue, move.state, move.which):
        moved = _move(store, move, [message.id for message in page.messages], len(all_moved.ids))
        all_moved = Moved(all_moved.ids + moved.ids, all_moved.kept | moved.kept)
        if on_progress is not None:
            on_progress(len(all_moved.ids))
    return all_moved


def give_back(store: Store, queue: str, holder: str) -> None:
    """Release all claimed messages of a queue to the front of the line, in their earlier order."""
    held = []
    for page in pages(store, queue, "leased"):
        held += [message for message in page.messages if message.holder == holder]
    receipts = [message.receipt for message in sorted(held, key=lambda message: message.order)]
    # The last first: each lot goes before the one before.
    for end in range(len(receipts), 0, -PAGE):
        store.execute(Settle(receipts[max(0, end - PAGE) : end], "ready", "front"))


def _move(store: Store, move: Move, ids: Sequence[str], before: int) -> Moved:
    if not ids:
        return Moved([])
    # Behind those that earlier pages have spaced out.
    delay_s = move.delay_s + before * move.spacing_s
    command = Move(
        move.queue, move.to, ids, to_queue=move.to_queue, delay_s=delay_s, spacing_s=move.spacing_s, limit=len(ids), error=move.error
    )
    return store.execute(command)
