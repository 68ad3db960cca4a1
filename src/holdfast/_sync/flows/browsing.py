# Generated from src/holdfast/_async/flows/browsing.py by tools/unasync.py; do not edit.
"""Reads and counts the messages of a queue page by page, and moves many of them."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from holdfast.commands import Browse, Browsed, Count, Filter, Move, Moved, Settle, Stats
from holdfast.records import Message, State
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


def find(store: Store, command: Browse) -> list[Browsed]:
    """The pages with the first messages, as many as the command's limit, each of which looks at a part of the queue."""
    found = [store.execute(command)]
    left = command.limit - len(found[0].messages)
    while found[-1].after is not None and left > 0:
        found.append(store.execute(replace(command, after=found[-1].after, limit=left)))
        left -= len(found[-1].messages)
    return found


def find_messages(store: Store, command: Browse) -> list[Message]:
    """The first messages, as many as the command's limit."""
    return [message for page in find(store, command) for message in page.messages]


def first_due(store: Store, queue: str) -> tuple[Message, int] | None:
    """The first message that is ready and due, and the moment; what is not due costs a few pages more."""
    command = Browse(queue, limit=1)
    while True:
        page = store.execute(command)
        due = next((message for message in page.messages if message.position <= page.now and not message.is_late(page.now)), None)
        if due is not None:
            return due, page.now
        if page.after is None:
            return None
        command = replace(command, after=page.after, limit=min(10 * command.limit, PAGE))


def count(store: Store, queue: str, which: Filter = EVERY) -> Stats:
    """The sizes, ages and holders of a queue, or of what a filter finds in it: a part of the queue at a time."""
    command = Count(queue, which)
    stats = store.execute(command)
    while stats.after is not None:
        stats = stats.joined(store.execute(replace(command, after=stats.after)))
    return stats


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
